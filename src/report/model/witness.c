/* Decides whether the passes of a launch agree, by the spreads of its witnesses. */
#include "report/model/witness.h"
#include "report/model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Passes of the same work may differ by this much. One more counted instruction means other work, while clocks move and
 * caches fill differently. The first row whose part a name contains applies. */
static const struct {
    const char *part;
    double tolerance_pct;
} tolerances[] = {{"inst_executed", 0.1}, {"", 10}};

static bool is_disagreeing(const kprof_model *model, const kprof_model_launch *launch, size_t witness)
{
    size_t i = 0;
    while (!strstr(model->metrics[witness].name, tolerances[i].part))
        i++;
    return launch->values[witness] > tolerances[i].tolerance_pct;
}

/* Passes that both have; both rise. */
static size_t count_common(const kprof_model_passes *a, const kprof_model_passes *b)
{
    size_t common = 0;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        common += a->items[i] == b->items[k];
        if (a->items[i] <= b->items[k])
            i++;
        else
            k++;
    }
    return common;
}

bool kprof_passes_disagree(const kprof_model *model, const kprof_model_launch *launch, const kprof_model_passes *passes)
{
    /* These are the planned passes. If the launch ran only once, no value joins several. */
    if (passes->count < 2 || launch->record.pass_count < 2)
        return false;
    for (size_t i = 0; i < model->witness_count; i++) {
        if (!is_disagreeing(model, launch, model->witnesses[i]))
            continue;
        const kprof_model_passes counted = kprof_model_passes_of(launch->device, model, model->witnesses[i]);
        if (count_common(passes, &counted) > 1)
            return true;
    }
    return false;
}

kprof_joining kprof_joining_of(const kprof_model *model, const kprof_model_launch *launch)
{
    kprof_joining joining = {0};
    for (size_t i = 0; i < model->metric_count && launch->measured > 0; i++) {
        const kprof_model_passes passes = kprof_model_passes_of(launch->device, model, i);
        if (isnan(launch->values[i]) || passes.count == 0)
            continue;
        if (strcmp(model->metrics[i].kind, KPROF_WITNESS_KIND) == 0) {
            joining.is_witnessed = true;
            continue;
        }
        const bool is_joined = passes.count > 1 && launch->record.pass_count > 1;
        joining.of_several += is_joined;
        joining.of_one_pass += !is_joined;
        joining.disagrees = joining.disagrees || kprof_passes_disagree(model, launch, &passes);
    }
    return joining;
}

size_t kprof_disagreements(const kprof_model *model, const kprof_model_launch *launch, kprof_disagreement **out)
{
    size_t count = 0;
    if (out)
        *out = kprof_calloc(model->witness_count + 1, sizeof **out);
    for (size_t i = 0; i < model->witness_count; i++) {
        size_t metric = model->witnesses[i];
        const char *name = model->metrics[metric].name;
        if (!is_disagreeing(model, launch, metric))
            continue;
        /* A report of somebody else's may lack it. */
        const size_t suffix = kprof_ends_with(name, KPROF_SPREAD_SUFFIX) ? strlen(KPROF_SPREAD_SUFFIX) : 0;
        if (out)
            (*out)[count] = (kprof_disagreement){kprof_strndup(name, strlen(name) - suffix), launch->values[metric]};
        count++;
    }
    return count;
}

void kprof_disagreements_free(kprof_disagreement *disagreements, size_t count)
{
    for (size_t i = 0; disagreements && i < count; i++)
        free(disagreements[i].witness);
    free(disagreements);
}

void kprof_disagreements_describe(const kprof_model *model, const kprof_model_launch *launch, kprof_strbuf *out)
{
    kprof_disagreement *found;
    const size_t count = kprof_disagreements(model, launch, &found);
    for (size_t i = 0; i < count; i++) {
        const kprof_human spread = kprof_units_human(found[i].spread_pct, "%", false);
        kprof_strbuf_printf(out, "%s%s %s %s", i > 0 ? "; " : "", found[i].witness, spread.number, spread.unit);
    }
    kprof_disagreements_free(found, count);
}
