/* The time that a program leaves its GPUs unused: when these were idle and why, copies that kernels waited for, and the
 * time that each step took. */
#pragma once

#include "report/report.h"

/* Make the temporary tables gpu_busy, gpu_idle, trace_step, trace_transfer and trace_allocation, once for an open
 * report with a trace. trace_lost.c tells their columns. */
kprof_status kprof_trace_find_lost(kprof_report *report) KPROF_MUST_CHECK;
