/* Stores the call stacks of a process, each once in a report, and finds the line of each that is the user's own. */
#pragma once

#include "report/store/store.h"

/* The state of a process. All 0 before its first record but the pool. */
typedef struct kprof_stack_ingest {
    kprof_pool *pool;
    struct kprof_known_frame *frames; /* [frame_count], in the order of their numbers */
    size_t frame_count;
    struct kprof_known_module *modules; /* [module_count] */
    size_t module_count;
    kprof_names kernels; /* mangled */
    int64_t *stacks;     /* [stack_count], rows in the order of their numbers */
    size_t stack_count;
} kprof_stack_ingest;

/* Store a record. BAD_SPOOL where it does not fit. */
kprof_status kprof_stack_ingest_frame(kprof_stack_ingest *ingest, const kprof_frame_record *record) KPROF_MUST_CHECK;
kprof_status kprof_stack_ingest_stack(kprof_stack_ingest *ingest, kprof_report *report,
                                      const kprof_stack_record *record) KPROF_MUST_CHECK;
/* The process has a kernel of this name: a function of this name in its own code launches that. */
void kprof_stack_ingest_kernel(kprof_stack_ingest *ingest, const char *mangled);
/* Store which stack the launch in row `id` has. */
void kprof_stack_ingest_launch(const kprof_stack_ingest *ingest, kprof_report *report,
                               const kprof_launch_record *launch, int64_t id);
/* The row of the process' stack of this number; 0: it has no such one. */
int64_t kprof_stack_ingest_row(const kprof_stack_ingest *ingest, int64_t stack);
/* Does the process have the stack of the launch, or the launch none? */
bool kprof_stack_ingest_knows(const kprof_stack_ingest *ingest, const kprof_launch_record *launch);
void kprof_stack_ingest_close(kprof_stack_ingest *ingest); /* the modules that it has opened */
