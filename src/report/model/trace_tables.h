/* Temporary tables of a trace, which pages and queries read. The .c file that makes a table tells its columns. */
#pragma once

#include "report/report.h"

/* Begin to make a temporary table, and what goes with it, in a report that may be open for reading alone; false: the
 * report has it, or cannot be read. Then end that, which undoes it after a failure. Tables may be made in between. */
bool kprof_trace_begin_table(kprof_report *report, const char *table);
void kprof_trace_end_table(kprof_report *report);

/* A part of the time of a trace, in Unix ns. */
typedef struct kprof_trace_window {
    int64_t start_ns, end_ns;
} kprof_trace_window;
/* From now on let the report have only those activities that happen, for a part at least, in a time: "START/END" from
 * its beginning, an NVTX range "NAME[@DOMAIN][/NUMBER]", or both; NULL: all of it. Allocations stay as they are. USAGE,
 * or NO_MATCH where there is no such range. To be called before the tables below are made. */
kprof_status kprof_trace_choose_time(kprof_report *report, const char *time, const char *range) KPROF_MUST_CHECK;

/* Each of these takes an open report with a trace, once. The report notes failures. */

/* Make first_call(process_id, correlation, start_ns, end_ns, thread, name_id): of calls with one number the first. */
void kprof_trace_find_calls(kprof_report *report);
/* Make trace_gpu(process, ordinal, gpu, label, device_id): the GPU that a process has this number for. Where all
 * processes have the same numbers, gpu and label are that number, too; else the label tells the host. */
void kprof_trace_find_gpus(kprof_report *report);
/* The gpu of a row with columns process_id and device, its label, and the label of a row whose device is a gpu. */
#define KPROF_TRACE_GPU "coalesce((SELECT gpu FROM temp.trace_gpu WHERE process=process_id AND ordinal=device), device)"
#define KPROF_TRACE_LABEL                                                                                              \
    "coalesce((SELECT label FROM temp.trace_gpu WHERE process=process_id AND ordinal=device), device)"
#define KPROF_TRACE_LABEL_OF_GPU "coalesce((SELECT label FROM temp.trace_gpu WHERE gpu=device LIMIT 1), device)"
/* Make memory_level(process_id, device, memory_id, time_ns, level), the bytes allocated from a time on, and
 * memory_move(process_id, device, memory_id, is_new, time_ns, correlation) of each allocation and release. A release
 * has the GPU and kind of memory of its allocation, whichever GPU was the current one. */
void kprof_trace_find_memory(kprof_report *report);
/* Make caller(process_id, correlation, stack_id) of the calls whose call stacks the report has; it may be empty. */
void kprof_trace_find_callers(kprof_report *report);
/* Make name_key(id, text, demangled, function): for each name the first one that has the same text, the same demangled
 * one, and the same function. */
void kprof_trace_find_names(kprof_report *report);
/* Make trace_shape: of each name, grid, block and dynamic shared memory the launches (c), time (t) and its median. */
void kprof_trace_find_shapes(kprof_report *report);
/* Make gpu_busy, gpu_idle, trace_step, trace_transfer and trace_allocation (trace_lost.c): when GPUs were idle and why,
 * copies that kernels waited for, and the time that each step took. */
void kprof_trace_find_lost(kprof_report *report);
/* Make work_lane(what, id, tid). A kernel (what is 1), copy (2), set (3) or graph (4) that overlaps another one of its
 * stream gets a row of its own, numbered from 2^30 to 2^31-1, so that nothing overlaps in a row. A range (5) that
 * begins in another one of its thread and ends after it gets no row. */
void kprof_trace_find_lanes(kprof_report *report);
/* Make range_kernel. It counts the kernels of one name (a column of name_key) in the ranges of one name, domain, style
 * and thread, and sums up their times. A kernel counts in every range of its thread that was open at its call. Memory
 * grows with the kernels of a thread, not with the open ranges. */
void kprof_trace_sum_range_kernels(kprof_report *report, const char *name);
/* Make kernel_range(kernel, range), of ids of trace_range and trace_kernel: the innermost range that its call is in. */
void kprof_trace_find_innermost_ranges(kprof_report *report);
/* Make range_span(range, start_ns, end_ns, ops): a range's first start and last end on the GPU, and how many kernels,
 * graphs, copies and sets it has there. Ranges with none are left out. */
void kprof_trace_project_ranges(kprof_report *report);
/* Make range_tree(range, parent, level), of ids of trace_range: the range of the same thread that each one lies in,
 * NULL for none, and how deep it lies, from 0; and push_tree, the same of pushed ranges alone, also those not ended. */
void kprof_trace_nest_ranges(kprof_report *report);
/* Make sampled_metric, trace_sampled and sampled_step of the samples of kprof trace --pm-sampling. */
void kprof_trace_find_samples(kprof_report *report);
/* The mean of samples, rows of trace_sampled, each weighted by this many ns. */
#define KPROF_MEAN_OF_SAMPLES(ns)                                                                                      \
    "round(total(value*(" ns "))/nullif(total(CASE WHEN value IS NOT NULL THEN " ns " END), 0), 3)"

/* Append ", mean AS name" for each metric, at most 20, over the rows of sampled_step of a group. */
void kprof_trace_list_samples(kprof_report *report, kprof_strbuf *out);
/* Has the trace any samples? */
bool kprof_trace_has_samples(kprof_report *report);
