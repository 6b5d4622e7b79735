/* Reports launches: their values, or why they have none. */
#pragma once

#include "core/config.h"
#include "cupti/profiler.h"
#include "inject/evaluate.h"
#include "inject/kernels.h"
#include "spool/record.h"

/* The size, with the NUL, of a text that says why a launch was measured in another way than asked for. */
#define KPROF_NOTE_BYTES 512

/* Why a launch has nothing of its instructions. */
#define KPROF_ONLY_IN_REPLAYS "the launch was not repeated, and instructions are measured in replays alone"
#define KPROF_OF_A_RANGE      "instructions are measured of single launches, and not of a range"
#define KPROF_OF_A_GRAPH      "CUPTI does not measure the instructions of a graph that is launched as a whole"

/* Why a launch or a range has no samples over time. */
#define KPROF_NO_TIMELINE_OF_RANGE "counters are sampled over the time of single launches, and not of a range"
#define KPROF_NO_TIMELINE          "the launch was not repeated, and counters are sampled over time in replays alone"

/* Describe a kernel, before the first record that refers to it. */
void kprof_deliver_kernel(const kprof_kernel *kernel);
/* Report a chosen launch: that it is measured, as far as its record holds values, mode and passes, or why it is not. */
void kprof_deliver_launch(kprof_launch_record *launch, const char *reason);
/* Have kprof_deliver_launch tell, in this thread, that nothing was measured of a launch's instructions or over time. It
 * does unless the caller, who tells what was measured, calls this with false. */
void kprof_deliver_tell_instructions(bool tells);
/* Report that a pass, from 1, begins or goes on; `last` is the last of the `open` chosen launches that it is for. */
void kprof_deliver_progress(const kprof_launch_record *last, uint64_t open, uint32_t pass, uint32_t pass_count);
/* Report that all launches that were asked for have their records, and nothing is open. */
void kprof_deliver_done(void);
/* Report an evaluated launch with `reason`, or why it could not be evaluated. Its record has mode and passes already
 * and gets the values and the spreads of the witnesses. A pushed range begins before its kernel: where the witnesses
 * tell by how much, the values leave that time out. */
void kprof_deliver(const kprof_chip_metrics *metrics, const kprof_evaluation *e, kprof_launch_record *record,
                   const char *reason);
/* Write the decoded image of one launch to the configured folder, if there is one; failing to is a warning. */
void kprof_deliver_image(const kprof_profiler *profiler, const kprof_launch_record *launch);
