/* Walks through the launches of a page, and leaves out those that do not meet the conditions of --filter. */
#include "report/model/change.h"
#include "report/page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A condition on one metric of the report; its limit is in base units. */
typedef struct bound_condition {
    kprof_condition condition; /* texts are borrowed */
    size_t metric;
    double nearest; /* value of a launch that is closest to meeting it; NaN: none has one */
} bound_condition;

typedef struct filtered_walk {
    const kprof_model *model;
    bound_condition *conditions; /* [count] */
    size_t count;
    uint64_t taken;
    kprof_model_visit *visit;
    void *user;
} filtered_walk;

static kprof_status fail_unknown_metric(const kprof_model *model, const kprof_condition *condition)
{
    KPROF_AUTO_FREE const char **names = kprof_calloc(model->metric_count + 1, sizeof *names);
    for (size_t i = 0; i < model->metric_count; i++)
        names[i] = model->metrics[i].name;
    const char *nearest = kprof_nearest_metric(condition->metric, names, model->metric_count);
    return kprof_fail(KPROF_UNKNOWN_NAME, "--filter \"%s\": metric \"%s\" is not in the report%s%s%s", condition->text,
                      condition->metric, nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                      nearest ? "\"?" : "; --page raw shows its metrics");
}

static kprof_status bind(const kprof_model *model, const kprof_condition *condition, bound_condition *out)
{
    double factor;
    *out = (bound_condition){*condition, kprof_names_find(&model->metric_names, condition->metric), NAN};
    if (out->metric == KPROF_NAMES_NONE)
        return fail_unknown_metric(model, condition);
    const char *unit = model->metrics[out->metric].unit;
    if (!kprof_units_parse(condition->unit, unit, &factor)) {
        const kprof_human scaled = kprof_units_human(2e6, unit, false);
        const bool scales = *unit && strcmp(scaled.unit, unit) != 0;
        if (strcmp(unit, "ns") == 0) /* a number alone will not do */
            return kprof_fail(KPROF_USAGE, "--filter \"%s\": \"%s\" is no unit of %s; give ns, us, ms or s",
                              condition->text, condition->unit, condition->metric);
        return kprof_fail(KPROF_USAGE, "--filter \"%s\": \"%s\" is no unit of %s; give %s%s%s%s, or a number alone",
                          condition->text, condition->unit, condition->metric, *unit ? "its unit " : "no unit", unit,
                          scales ? ", one such as " : "", scales ? scaled.unit : "");
    }
    out->condition.limit *= factor;
    return KPROF_OK;
}

/* How far a value is from meeting a condition. */
static double distance(const bound_condition *bound, double value)
{
    return fabs(value - bound->condition.limit);
}

static kprof_status visit_if_met(void *user, const kprof_model_launch *launch)
{
    filtered_walk *walk = user;
    bool is_met = true;
    for (size_t i = 0; i < walk->count; i++) {
        bound_condition *bound = &walk->conditions[i];
        const double value = launch->values[bound->metric];
        is_met = is_met && kprof_condition_is_met(&bound->condition, value);
        if (!isnan(value) && !(distance(bound, bound->nearest) <= distance(bound, value)))
            bound->nearest = value;
    }
    walk->taken += is_met;
    return is_met ? walk->visit(walk->user, launch) : KPROF_OK;
}

/* Say how near launches come to the first condition. */
static kprof_status fail_no_match(const filtered_walk *walk)
{
    const bound_condition *first = &walk->conditions[0];
    const kprof_human human = kprof_units_human(first->nearest, walk->model->metrics[first->metric].unit, false);
    if (isnan(first->nearest))
        return kprof_fail(KPROF_NO_MATCH, "--filter \"%s\": no launch has a value of %s", first->condition.text,
                          first->condition.metric);
    return kprof_fail(KPROF_NO_MATCH, "--filter \"%s\": no launch meets %s; the nearest has %s%s%s",
                      first->condition.text, walk->count > 1 ? "this and the other conditions" : "it", human.number,
                      *human.unit ? " " : "", human.unit);
}

kprof_status kprof_page_walk(const kprof_page_context *context, kprof_model_visit *visit, void *user)
{
    return kprof_page_walk_parts(context, (kprof_model_parts){0}, visit, user);
}

kprof_status kprof_page_walk_parts(const kprof_page_context *context, kprof_model_parts parts, kprof_model_visit *visit,
                                   void *user)
{
    const kprof_page_report *report = context->reports;
    const kprof_print_options *options = context->options;
    kprof_model_walk walk = {report->file, &report->model, options->filter, true};
    if (options->condition_count == 0)
        return kprof_model_joined_launches(&walk, parts, visit, user);
    filtered_walk filtered = {.model = &report->model, .visit = visit, .user = user};
    filtered.conditions = kprof_calloc(options->condition_count, sizeof *filtered.conditions);
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < options->condition_count && status == KPROF_OK; i++)
        status = bind(&report->model, &options->conditions[i], &filtered.conditions[filtered.count++]);
    KPROF_THEN(status, kprof_model_joined_launches(&walk, parts, visit_if_met, &filtered));
    if (status == KPROF_OK && filtered.taken == 0)
        status = fail_no_match(&filtered);
    free(filtered.conditions);
    return status;
}
