/* Messages for people. The library never writes to stdout: the command line sends messages to stderr or --log-file,
 * the injection library puts them into its spool. */
#pragma once

#include "core/status.h"

#include <stdbool.h>

typedef enum kprof_log_level { KPROF_LOG_ERROR, KPROF_LOG_WARNING, KPROF_LOG_INFO, KPROF_LOG_DEBUG } kprof_log_level;

/* Receives each finished message (one line, cleaned as core/clean.h tells, no newline, no prefix). `user`: as given to
 * kprof_log_set_sink. */
typedef void kprof_log_sink(void *user, kprof_log_level level, const char *message);

typedef struct kprof_log_receiver {
    kprof_log_sink *sink;
    void *user;
} kprof_log_receiver;

/* Install the sink; NULL is the default, "kprof: [error: |warning: ]message\n" on stderr. Return the one before,
 * never NULL, so that a caller can borrow the messages for a while and put it back. Not thread-safe. */
kprof_log_receiver kprof_log_set_sink(kprof_log_sink *sink, void *user);
/* Has an error been written to stderr? */
bool kprof_log_has_failed(void);
/* The sink for what nobody should read. */
void kprof_log_discard(void *user, kprof_log_level level, const char *message);
/* The value of an expression while its messages go to a sink, or to nobody. */
#define KPROF_HEAR(take, whose, ...)                                                                                   \
    __extension__({                                                                                                    \
        const kprof_log_receiver receiver_before = kprof_log_set_sink(take, whose);                                    \
        const __typeof__(__VA_ARGS__) heard = (__VA_ARGS__);                                                           \
        kprof_log_set_sink(receiver_before.sink, receiver_before.user);                                                \
        heard;                                                                                                         \
    })
#define KPROF_MUTE(...) KPROF_HEAR(kprof_log_discard, NULL, __VA_ARGS__)
/* Messages above this level are dropped; KPROF_LOG_INFO unless told otherwise. */
void kprof_log_set_level(kprof_log_level level);

void kprof_log(kprof_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Log an error and return `status`: `return kprof_fail(KPROF_USAGE, "--set: %s is not known", name);` */
kprof_status kprof_fail(kprof_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
