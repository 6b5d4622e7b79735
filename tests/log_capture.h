/* For tests: messages go into a buffer instead of stderr, so that a test can ask what was said. */
#pragma once

#include "core/log.h"

#include <stdio.h>
#include <string.h>

typedef struct log_capture {
    unsigned count;
    kprof_log_level level; /* of the last message */
    char last[4096];
} log_capture;

static inline void log_capture_sink(void *user, kprof_log_level level, const char *message)
{
    log_capture *capture = user;
    capture->count++;
    capture->level = level;
    snprintf(capture->last, sizeof capture->last, "%s", message);
}

/* From here on messages go to `capture`, which starts empty. */
static inline void log_capture_start(log_capture *capture)
{
    memset(capture, 0, sizeof *capture);
    kprof_log_set_sink(log_capture_sink, capture);
}
