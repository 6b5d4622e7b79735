/* Formats messages and hands them to one sink. Used inside other people's programs: errno survives, stdout is never
 * touched, and what could steer a terminal (kernel names come from outside) never reaches one. */
#include "core/log.h"
#include "core/clean.h"
#include "core/signals.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_SHORT " ... (out of memory)" /* the end of a message that is longer than `fixed` */

static void write_stderr(void *user, kprof_log_level level, const char *message);

/* Atomic because any thread of the application may log; set before those threads run. */
static _Atomic(kprof_log_sink *) current_sink = write_stderr;
static _Atomic(void *) current_user;
static _Atomic(int) current_level = KPROF_LOG_INFO;
static atomic_bool has_failed;

static void write_stderr(void *user, kprof_log_level level, const char *message)
{
    (void)user;
    if (level == KPROF_LOG_ERROR)
        atomic_store(&has_failed, true);
    const char *prefix = level == KPROF_LOG_ERROR ? "error: " : level == KPROF_LOG_WARNING ? "warning: " : "";
    kprof_write_guard guard;
    kprof_write_guard_begin(&guard);
    fprintf(stderr, "kprof: %s%s\n", prefix, message);
    kprof_write_guard_end(&guard);
}

kprof_log_receiver kprof_log_set_sink(kprof_log_sink *sink, void *user)
{
    const kprof_log_receiver before = {atomic_load(&current_sink), atomic_load(&current_user)};
    atomic_store(&current_user, user);
    atomic_store(&current_sink, sink ? sink : write_stderr);
    return before;
}

bool kprof_log_has_failed(void)
{
    return atomic_load(&has_failed);
}

void kprof_log_discard(void *user, kprof_log_level level, const char *message)
{
    (void)user;
    (void)level;
    (void)message;
}

void kprof_log_set_level(kprof_log_level level)
{
    atomic_store(&current_level, (int)level);
}

static void __attribute__((format(printf, 2, 0))) log_message(kprof_log_level level, const char *format, va_list args)
{
    if ((int)level > atomic_load(&current_level))
        return;
    int saved_errno = errno;
    char fixed[1024];
    va_list again;
    va_copy(again, args);
    int needed = vsnprintf(fixed, sizeof fixed, format, args);
    char *text = fixed;
    char *longer = NULL;
    if (needed >= (int)sizeof fixed && (longer = malloc((size_t)needed + 1)) != NULL) {
        vsnprintf(longer, (size_t)needed + 1, format, again);
        text = longer;
    } else if (needed >= (int)sizeof fixed) {
        memcpy(fixed + sizeof fixed - sizeof CUT_SHORT, CUT_SHORT, sizeof CUT_SHORT); /* the reason stands last */
    }
    va_end(again);
    if (needed >= 0) {
        /* Make a message one clean line: spell out control characters of a name or pattern, or at worst mask them. */
        char *clean = kprof_text_is_clean(text) ? NULL : kprof_clean_text(text);
        for (char *c = text; !clean && *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
        atomic_load (&current_sink)(atomic_load(&current_user), level, clean ? clean : text);
        free(clean);
    }
    free(longer);
    errno = saved_errno;
}

void kprof_log(kprof_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_message(level, format, args);
    va_end(args);
}

kprof_status kprof_fail(kprof_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_message(KPROF_LOG_ERROR, format, args);
    va_end(args);
    return status;
}
