/* ncu's words for sections, kernels and units, in its CSV and in its text. */
#pragma once

#include "report/emit/emit.h"

/* Readers of ncu's output do not know kprof's own comparison of passes: leave the metric out. */
bool kprof_ncu_is_unknown(const kprof_emit_metric *metric);
/* The base unit of a metric: ncu counts the dimensions of a block in blocks. */
const char *kprof_ncu_base_unit(const kprof_emit_metric *metric);
/* ncu calls a roofline a roofline chart. Caller frees. */
char *kprof_ncu_section_name(const char *name);
/* The name of the launch's kernel, behind its innermost pushed range where the options ask for it. Caller frees. */
char *kprof_ncu_kernel_name(const kprof_emitter *emitter, const kprof_model_launch *launch, const char *kernel);
/* OPT (with an estimate), INF (what limits the launch) or WRN. */
const char *kprof_ncu_rule_type(const kprof_found *found);
