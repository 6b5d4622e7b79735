/* Keeps counter data images, for those who want to evaluate them themselves. */
#ifndef KPROF_INJECT_KEEP_H
#define KPROF_INJECT_KEEP_H

#include "cupti/profiler.h"
#include "spool/record.h"

/* Write the decoded image of one launch to the folder that the configuration names, if it does; failing to is a
 * warning.
 */
void kprof_keep_image(const kprof_profiler *profiler, const kprof_launch_record *launch);

#endif
