/* Status codes of every fallible kprof function, their texts and the exit codes that the command line gives for them.
 * One list makes the enum, the names, the messages and the table in kprof(1). */
#pragma once

#include <kprof/exit_codes.h>

typedef enum kprof_status {
#define KPROF_STATUS_ENUM(name, exit_code, message) KPROF_##name,
    KPROF_STATUS_MAP(KPROF_STATUS_ENUM)
#undef KPROF_STATUS_ENUM
        KPROF_STATUS_COUNT
} kprof_status;

#define KPROF_MUST_CHECK __attribute__((warn_unused_result))
/* The next step of several: unless one before it has failed, `status` becomes that of the call. It may also be a result
 * of CUDA's or CUPTI's, whose successes are 0, too. */
#define KPROF_THEN(status, ...) ((status) = (status) == 0 ? (__VA_ARGS__) : (status))
/* One of several steps that are all made, whichever fails: `status` is that of the last one that failed. */
#define KPROF_ALSO(status, ...)                                                                                        \
    do {                                                                                                               \
        const kprof_status also = (__VA_ARGS__);                                                                       \
        (status) = also == KPROF_OK ? (status) : also;                                                                 \
    } while (0)

/* Name ("NO_MATCH"), one-line message and exit code of a status; never NULL, "?" for a value outside the enum. */
const char *kprof_status_name(kprof_status status);
const char *kprof_status_message(kprof_status status);
int kprof_status_exit_code(kprof_status status);
