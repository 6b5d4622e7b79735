/* Shows that a run lives: a status line on a terminal, else a short message every few seconds. */
#pragma once

#include "core/log.h"
#include "spool/record.h"

#include <stdio.h>

typedef struct kprof_progress {
    FILE *out;     /* NULL: silent */
    bool terminal; /* draw a line that is overwritten */
    bool drawn;
    kprof_log_receiver messages; /* where they go once the line is cleared */
    FILE *as_ncu;                /* borrowed; gets the lines that ncu prints of a run; NULL: there are none */
    uint64_t goal;               /* launches that will be profiled, 0: not known */
    uint64_t done;
    uint64_t launches; /* that the report has, measured or not: the number of the next one */
    char kernel[64];
    uint64_t open;             /* launches at least of the batch under way */
    uint32_t pass, pass_count; /* of the launch under way; 0: not known */
    size_t code, code_count;   /* of the module whose code is read; 0: the launches are not over */
    double start_s, last_s;    /* monotonic clock: first launch, last line */
} kprof_progress;

/* The line for this moment, without prefix or newline: "12 of 200 launches, vectorAdd, pass 3 of 28, ...". Caller
 * frees. */
char *kprof_progress_line(const kprof_progress *progress, double now_s);

/* Start showing on `out` (a terminal or not), or nowhere with NULL. While a terminal's line is shown, messages of
 * core/log.h clear it first. */
void kprof_progress_begin(kprof_progress *progress, FILE *out, uint64_t goal);
/* A process of the application has called CUDA. */
void kprof_progress_connect(kprof_progress *progress, int64_t pid, const char *executable);
/* It has ended. */
void kprof_progress_disconnect(kprof_progress *progress, int64_t pid);
/* A launch is under way: the kernel's function name and what the process said. */
void kprof_progress_note(kprof_progress *progress, const char *kernel, const kprof_progress_record *record);
/* A launch is measured. */
void kprof_progress_launch(kprof_progress *progress, const char *kernel, uint32_t pass_count);
/* The code of a module is read. The line is drawn at once: nvdisasm may take long. */
void kprof_progress_code(void *progress, size_t number, size_t count);
/* Draw when it is time to. */
void kprof_progress_tick(kprof_progress *progress);
/* Clear the line, and stop showing it. */
void kprof_progress_end(kprof_progress *progress);
