/* ncu's words for what kprof calls otherwise. */
#include "report/emit/ncu_words.h"
#include "core/nvtx.h"

#include <math.h>
#include <string.h>

bool kprof_ncu_is_unknown(const kprof_emit_metric *metric)
{
    return kprof_ends_with(metric->name, KPROF_SPREAD_SUFFIX);
}

const char *kprof_ncu_base_unit(const kprof_emit_metric *metric)
{
    static const char dimension[] = "launch__block_dim_";
    return strncmp(metric->name, dimension, strlen(dimension)) == 0 ? "block" : metric->unit;
}

char *kprof_ncu_section_name(const char *name)
{
    static const char roofline[] = "Roofline";
    const char *found = strstr(name, roofline);
    const size_t length = found ? (size_t)(found - name) + strlen(roofline) : 0;
    return found ? kprof_strprintf("%.*s Chart%s", (int)length, name, name + length) : kprof_strdup(name);
}

/* "range/kernel"; NULL where no range was pushed. */
static char *name_in_range(const kprof_model_launch *launch, const char *kernel)
{
    const char *text = launch->record.nvtx;
    KPROF_AUTO_FREE char *innermost = kprof_strndup(text, kprof_nvtx_innermost_length(text));
    KPROF_AUTO(kprof_nvtx_parsed) ranges;
    kprof_nvtx_parse_text(innermost, &ranges);
    if (ranges.count == 0)
        return NULL;
    const kprof_nvtx_range *last = &ranges.items[ranges.count - 1];
    return last->is_started ? NULL : kprof_strprintf("%s/%s", last->name, kernel);
}

char *kprof_ncu_kernel_name(const kprof_emitter *emitter, const kprof_model_launch *launch, const char *kernel)
{
    const bool renames = emitter->options->nvtx_renames && !kprof_launch_is_graph(&launch->record);
    char *renamed = renames ? name_in_range(launch, kernel) : NULL;
    return renamed ? renamed : kprof_strdup(kernel);
}

const char *kprof_ncu_rule_type(const kprof_found *found)
{
    return !isnan(found->gain_pct) ? "OPT" : found->finding->verdict == KPROF_VERDICT_LIMIT ? "INF" : "WRN";
}
