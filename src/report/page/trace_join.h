/* Joins the launches that were measured to the kernels of a trace, by kernel and shape. */
#pragma once

#include "report/page/page.h"

/* Make the temporary table trace_counted, once for an open report: trace_join.c tells its columns. It has no row where
 * nothing was measured, and no limits where `findings` is NULL. */
kprof_status kprof_trace_join(const kprof_page_context *context, const kprof_finding_list *findings) KPROF_MUST_CHECK;
