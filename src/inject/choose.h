/* Counts launches, chooses those that are measured, and describes them. */
#pragma once

#include "inject/devices.h"
#include "inject/kernels.h"

/* A launch among the others. */
typedef struct kprof_counted {
    kprof_kernel *kernel; /* NULL: out of memory */
    uint64_t position;    /* of all launches of the process, from 0 */
    uint64_t number;      /* of those of the kernel, from 1 */
} kprof_counted;

/* Count a launch of the application. */
kprof_counted kprof_choose_count(const kprof_call *call);
/* Count one of the kernel that the caller has found, such as that of a range. */
void kprof_choose_count_of_kernel(kprof_counted *launch);
/* If nothing was chosen, tell where launches were that --kernel-id wants in other contexts or streams. */
void kprof_choose_tell_places(void);
/* Write how often each kernel was launched so far. */
void kprof_choose_write_counts(void);

/* Is the launch one that is measured? Counts it for the filter, so ask once. `device` may be NULL, and `node` is, but
 * for kernels of graphs. */
bool kprof_choose_launch(const kprof_call *call, const kprof_counted *launch, const kprof_device *device,
                         const kprof_graph_call *node);
/* The same for a range of the application that has had a launch. */
bool kprof_choose_range(const kprof_counted *range, const kprof_device *device);
/* Put all into the record that is known before the launch, but for its stack. */
void kprof_choose_describe(const kprof_call *call, const kprof_counted *launch, kprof_launch_record *record);

/* Put the number and origin of the calling thread's call stack into the record; the stack's own records are written by
 * then. Number 0: there is none. */
void kprof_choose_take_stack(kprof_launch_record *record);
/* Return the number by which a node of a graph remembers the call that makes it; 0: there is nothing to remember. */
uint32_t kprof_choose_note_node(void);
/* Put the stack of that call into the record of the node's kernel; if it is not known, that of the graph's launch. */
void kprof_choose_take_node_stack(const kprof_graph_call *node, kprof_launch_record *record);

/* -c counts one launch of a sample: the one with the last pass. */
void kprof_choose_settle_sampled(const kprof_launch_record *record);
/* Report a chosen launch that is not measured, and why. If it was put off, -c does not count it. */
void kprof_choose_write_unmeasured(kprof_launch_record *record, const char *obstacle);
