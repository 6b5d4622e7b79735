/* A made-up chip behind planner/host.h, quick and the same everywhere: a few metrics to list, and every name that is
 * built as metrics are can be collected. */
#include "fuzz.h"

#include "planner/planner.h"
#include "planner/timeline.h"

struct kprof_host {
    const char *chip;
};

static const char *const bases[3][4] = {
    {"dram__bytes", "sm__cycles_active", "TPC.TriageCompute.sm__cycles_active", "gpu__time_duration"},
    {"smsp__inst_executed_per_warp", "l1tex__t_hit_rate", NULL, NULL},
    {"sm__throughput", "gpu__dram_throughput", NULL, NULL}};
static const char *const suffixes[] = {"sum",
                                       "avg",
                                       "max",
                                       "min",
                                       "ratio",
                                       "pct",
                                       "sum.per_second",
                                       "avg.pct_of_peak_sustained_elapsed",
                                       "avg.per_cycle_active"};
enum { SUFFIX_COUNT = sizeof suffixes / sizeof *suffixes };

static kprof_status add(kprof_strlist *out, const char *text)
{
    return kprof_strlist_add(out, text) ? KPROF_OK : KPROF_NO_MEMORY;
}

kprof_status kprof_host_chips(kprof_strlist *out)
{
    return add(out, "GH100");
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    static kprof_host host;
    host.chip = chip;
    *out = &host;
    return KPROF_OK;
}

void kprof_host_close(kprof_host *host) {}

const char *kprof_host_label(const kprof_host *host)
{
    return host->chip;
}

const char *kprof_host_chip(const kprof_host *host)
{
    return host->chip;
}

kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < 4 && bases[type][i] && status == KPROF_OK; i++)
        status = add(out, bases[type][i]);
    return status;
}

kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < SUFFIX_COUNT && status == KPROF_OK; i++)
        status = add(out, suffixes[i]);
    return status;
}

kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strbuf) name = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&name, "dram__bytes%s", throughput + kprof_metric_base_length(throughput));
    kprof_status status = name.failed ? KPROF_NO_MEMORY : add(out, name.data);
    return status;
}

bool kprof_host_has_metric(kprof_host *host, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    size_t length = kprof_metric_base_length(name);
    bool is_known = length > 0 && strstr(name, "__") && name[strspn(name, letters)] == '\0' && !name[length];
    for (size_t i = 0; i < SUFFIX_COUNT && !is_known && name[length] == '.'; i++)
        is_known = strstr(name, "__") && strcmp(name + length + 1, suffixes[i]) == 0;
    return is_known;
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    return kprof_host_has_metric(host, name) && name[kprof_metric_base_length(name)];
}

bool kprof_host_can_sample(kprof_host *host, const char *name)
{
    return false;
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    return KPROF_OK;
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    *out = (kprof_metric_info){0};
    if (!kprof_host_has_metric(host, name))
        return KPROF_UNKNOWN_NAME;
    out->name = strndup(name, kprof_metric_base_length(name));
    out->description = strdup("made up");
    out->hw_unit = strdup("");
    out->unit = strdup("byte");
    return KPROF_OK;
}

/* One pass for each name. */
kprof_status kprof_planner_make(kprof_host *host, const kprof_planner_wish *wish, kprof_planned *out)
{
    kprof_status status = KPROF_OK;
    *out = (kprof_planned){0};
    for (size_t i = 0; i < wish->names->count && status == KPROF_OK; i++) {
        bool fits = wish->limits->max_passes == 0 || i < wish->limits->max_passes;
        status = add(fits ? &out->collect : &out->left_out, wish->names->items[i]);
    }
    kprof_strlist_sort(&out->collect);
    out->schedule.pass_count = out->collect.count;
    return status;
}

void kprof_planned_free(kprof_planned *planned)
{
    kprof_strlist_free(&planned->collect);
    kprof_strlist_free(&planned->left_out);
}

/* Nothing can be sampled over time. */
kprof_status kprof_timeline_make(kprof_host *host, const kprof_strlist *names, size_t most, kprof_timeline_plan *out)
{
    *out = (kprof_timeline_plan){0};
    return KPROF_OK;
}

void kprof_timeline_free(kprof_timeline_plan *plan)
{
    *plan = (kprof_timeline_plan){0};
}

size_t kprof_timeline_metric_count(const kprof_timeline_plan *plan)
{
    return plan->count;
}
