/* Finds the denominator of each ratio by its name, and the formula of each derived value in the sections. */
#include "report/model/rollup.h"
#include "report/model/change.h"
#include "report/store/derived.h"

#include <math.h>
#include <string.h>

typedef enum metric_kind { KIND_AMOUNT, KIND_RATIO, KIND_PROPERTY } metric_kind;

typedef struct metric_rule {
    metric_kind kind;
    bool adds_up;         /* an amount whose sum over launches means something */
    bool has_denominator; /* the weight is its denominator; else it is the time */
    size_t weight;        /* metric that a ratio is weighted by; KPROF_NAMES_NONE: there is none */
} metric_rule;

/* A value with a formula: of its expression, or of a roofline against a roof. */
typedef struct formula {
    size_t metric;
    const kprof_expr *expression; /* NULL: a point of a roofline */
    const kprof_roofline *roofline;
    const kprof_roof *roof;
    bool is_pct;      /* of the roof; else the intensity */
    size_t *operands; /* [operand_count]: metrics */
    size_t operand_count;
} formula;

typedef struct chip_formulas {
    formula *items; /* in an order in which later ones may use earlier ones */
    size_t count;
} chip_formulas;

struct kprof_rollup {
    const kprof_model *model;
    metric_rule *rules;   /* [metric_count] */
    chip_formulas *chips; /* [chip_count] */
    kprof_rolled_up last;
};

const char *kprof_rollup_name(kprof_rollup_method method)
{
    static const char *const names[] = {NULL, "same", "mean", "ratio", "time", "formula"};
    return names[method];
}

/* The metric "UNIT__NAME.avg" or another roll-up of it, since all serve equally as a weight; KPROF_NAMES_NONE: the
 * report has none of them. */
static size_t find_counter(const kprof_model *model, const char *metric, const char *counter, size_t length)
{
    static const char *const rollups[] = {".sum", ".avg", ".max"};
    const char *unit_end = strstr(metric, "__");
    size_t found = KPROF_NAMES_NONE;
    for (size_t i = 0; unit_end && i < COUNT_OF(rollups) && found == KPROF_NAMES_NONE; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s%.*s%s", (int)(unit_end + 2 - metric), metric, (int)length, counter,
                 rollups[i]);
        found = kprof_names_find(&model->metric_names, name);
    }
    return found;
}

static size_t find_whole(const kprof_model *model, const char *metric, const char *counter)
{
    return find_counter(model, metric, counter, strlen(counter));
}

/* Cycles that the clock of the metric's unit counted. The units of a GPC share its clock. */
static size_t find_elapsed(const kprof_model *model, const char *metric)
{
    static const char *const units[] = {"gpc__", "tpc__", "sm__", "smsp__", "l1tex__", "idc__"};
    size_t found = find_whole(model, metric, "cycles_elapsed");
    for (size_t i = 0; found == KPROF_NAMES_NONE && i < COUNT_OF(units); i++)
        if (strncmp(metric, units[i], strlen(units[i])) == 0)
            found = find_whole(model, "gpc__", "cycles_elapsed");
    return found;
}

/* "smsp__A_per_B.ratio": B, or what counts the same. */
static size_t denominator_of_ratio(const kprof_model *model, const char *name)
{
    const char *per = NULL, *end = strrchr(name, '.');
    for (const char *at = strstr(name, "_per_"); at; at = strstr(at + 1, "_per_"))
        per = at + strlen("_per_");
    if (!per || !end || per > end)
        return KPROF_NAMES_NONE;
    const size_t found = find_counter(model, name, per, (size_t)(end - per));
    const bool is_issue = strncmp(per, "issue_active.", strlen("issue_active.")) == 0; /* one instruction each */
    return found == KPROF_NAMES_NONE && is_issue ? find_whole(model, name, "inst_issued") : found;
}

/* "lts__t_sector_hit_rate.pct" and "l1tex__t_sector_pipe_lsu_hit_rate.pct": lts__t_sectors, l1tex__t_sectors_pipe_lsu.
 */
static size_t denominator_of_hit_rate(const kprof_model *model, const char *name)
{
    static const char sector[] = "t_sector", rate[] = "_hit_rate.pct";
    const char *at = strstr(name, "__t_sector");
    char counter[200];
    if (!at)
        return KPROF_NAMES_NONE;
    at += 2 + strlen(sector);
    const size_t between = strlen(at) - strlen(rate);
    snprintf(counter, sizeof counter, "t_sectors%.*s", (int)between, at);
    return find_whole(model, name, counter);
}

/* Return the metric that a ratio was divided by; KPROF_NAMES_NONE: the report does not have it. */
static size_t denominator_of(const kprof_model *model, const char *name)
{
    if (kprof_ends_with(name, ".per_second"))
        return kprof_names_find(&model->metric_names, KPROF_TIME_METRIC);
    if (strstr(name, "throughput.")) /* the largest of several ratios is none */
        return KPROF_NAMES_NONE;
    if (kprof_ends_with(name, ".per_cycle_active") || kprof_ends_with(name, ".pct_of_peak_sustained_active"))
        return find_whole(model, name, "cycles_active");
    if (kprof_ends_with(name, ".per_cycle_elapsed") || kprof_ends_with(name, ".pct_of_peak_sustained_elapsed"))
        return find_elapsed(model, name);
    if (kprof_ends_with(name, "_hit_rate.pct"))
        return denominator_of_hit_rate(model, name);
    return kprof_ends_with(name, ".ratio") ? denominator_of_ratio(model, name) : KPROF_NAMES_NONE;
}

static metric_kind kind_of(const kprof_model_metric *metric)
{
    static const char *const rollups[] = {".sum", ".avg", ".max", ".min"};
    if (strcmp(metric->kind, "launch") == 0)
        return KIND_PROPERTY;
    if (strcmp(metric->kind, "derived") == 0)
        return *metric->unit && !strpbrk(metric->unit, "%/") ? KIND_AMOUNT : KIND_RATIO;
    for (size_t i = 0; i < COUNT_OF(rollups); i++)
        if (kprof_ends_with(metric->name, rollups[i]) && !strpbrk(metric->unit, "%/"))
            return KIND_AMOUNT;
    return KIND_RATIO;
}

static void make_rule(const kprof_model *model, size_t index, metric_rule *out)
{
    const kprof_model_metric *metric = &model->metrics[index];
    const char *suffix = strrchr(metric->name, '.');
    out->kind = kind_of(metric);
    out->adds_up = out->kind == KIND_AMOUNT && suffix && strcmp(suffix, ".sum") == 0 && *metric->unit;
    out->weight = KPROF_NAMES_NONE;
    if (out->kind == KIND_RATIO && strcmp(metric->kind, "derived") != 0)
        out->weight = denominator_of(model, metric->name);
    out->has_denominator = out->weight != KPROF_NAMES_NONE;
    if (out->kind != KIND_AMOUNT && !out->has_denominator)
        out->weight = kprof_names_find(&model->metric_names, KPROF_TIME_METRIC);
}

static void add_operands(const kprof_model *model, const kprof_expr *expression, formula *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    if (expression)
        kprof_expr_names(expression, &names);
    for (size_t i = 0; i < names.count; i++)
        *KPROF_POOL_ADD(model->pool, out->operands, out->operand_count) =
            kprof_names_find(&model->metric_names, names.items[i]);
}

/* A new formula of a metric, without operands yet. NULL without the metric. */
static formula *add_formula(const kprof_model *model, chip_formulas *to, const char *name)
{
    const size_t metric = kprof_names_find(&model->metric_names, name);
    if (metric == KPROF_NAMES_NONE)
        return NULL;
    formula *added = KPROF_POOL_ADD(model->pool, to->items, to->count);
    added->metric = metric;
    return added;
}

typedef struct adder {
    const kprof_model *model;
    chip_formulas *to;
} adder;

static void add_item(void *user, kprof_item *item, const char *column)
{
    const adder *how = user;
    formula *added = item->name && item->expression ? add_formula(how->model, how->to, item->name) : NULL;
    (void)column;
    if (added) {
        added->expression = item->compiled;
        add_operands(how->model, item->compiled, added);
    }
}

static void add_point(const kprof_model *model, chip_formulas *to, const formula *point)
{
    char name[256];
    const kprof_expr *const sources[] = {point->roofline->work.compiled, point->roof->traffic.compiled,
                                         point->roofline->peak.compiled, point->roof->peak.compiled};
    const char *what = point->is_pct ? "pct_of_roof" : "intensity";
    kprof_roofline_metric_name(name, sizeof name, (const char *const[]){point->roofline->id, point->roof->label, what});
    formula *added = add_formula(model, to, name);
    if (!added)
        return;
    const size_t metric = added->metric;
    *added = *point;
    added->metric = metric;
    for (size_t i = 0; i < (point->is_pct ? 4u : 2u); i++)
        add_operands(model, sources[i], added);
}

static void add_section(const kprof_model *model, chip_formulas *to, const kprof_section *section)
{
    kprof_section_visit(section, add_item, &(adder){model, to});
    for (size_t i = 0; i < section->roofline_count; i++) {
        const kprof_roofline *line = &section->rooflines[i];
        for (size_t k = 0; k < 2 * line->roof_count; k++)
            add_point(model, to, &(formula){.roofline = line, .roof = &line->roofs[k / 2], .is_pct = k % 2});
    }
}

kprof_rollup *kprof_rollup_new(const kprof_model *model)
{
    kprof_rollup *rollup = kprof_pool_calloc(model->pool, 1, sizeof *rollup);
    rollup->model = model;
    rollup->rules = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *rollup->rules);
    rollup->chips = kprof_pool_calloc(model->pool, model->chip_count + 1, sizeof *rollup->chips);
    rollup->last.values = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *rollup->last.values);
    rollup->last.methods = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *rollup->last.methods);
    for (size_t i = 0; i < model->metric_count; i++)
        make_rule(model, i, &rollup->rules[i]);
    for (size_t i = 0; i < model->chip_count; i++)
        for (size_t k = 0; k < model->chips[i].section_count; k++)
            add_section(model, &rollup->chips[i], &model->chips[i].sections[k]);
    return rollup;
}

void kprof_rollup_add(const kprof_rollup *rollup, const double *values, kprof_rollup_total *totals)
{
    for (size_t i = 0; i < rollup->model->metric_count; i++) {
        const double value = values[i];
        kprof_rollup_total *total = &totals[i];
        if (isnan(value))
            continue;
        total->minimum = total->count == 0 || value < total->minimum ? value : total->minimum;
        total->maximum = total->count == 0 || value > total->maximum ? value : total->maximum;
        total->sum += value;
        total->count++;
        const size_t weight = rollup->rules[i].weight;
        if (weight == KPROF_NAMES_NONE || isnan(values[weight]))
            continue;
        total->weighed++;
        total->weighted += value * values[weight];
        total->weight += values[weight];
    }
}

static double roll_up(const metric_rule *rule, const kprof_rollup_total *total, kprof_rollup_method *method)
{
    *method = KPROF_ROLLUP_NONE;
    if (total->count == 0)
        return NAN;
    if (rule->kind == KIND_AMOUNT) {
        *method = KPROF_ROLLUP_MEAN;
        return total->sum / (double)total->count;
    }
    if (total->minimum == total->maximum) {
        *method = KPROF_ROLLUP_SAME;
        return total->minimum;
    }
    const bool is_whole = total->weighed == total->count || rule->kind == KIND_PROPERTY; /* which others have too */
    if (!is_whole || !(total->weight > 0))
        return NAN;
    *method = rule->has_denominator ? KPROF_ROLLUP_RATIO : KPROF_ROLLUP_TIME;
    return total->weighted / total->weight;
}

typedef struct operand_values {
    const kprof_model *model;
    const double *values;
} operand_values;

static double look_up(void *user, const char *name)
{
    const operand_values *from = user;
    return kprof_model_value(from->model, from->values, name);
}

static double evaluate(const formula *rule, operand_values *from)
{
    if (rule->expression)
        return kprof_expr_evaluate(rule->expression, look_up, from);
    const kprof_roofline_point at = kprof_roofline_locate((kprof_roofline_input){
        .work = kprof_expr_evaluate(rule->roofline->work.compiled, look_up, from),
        .work_peak = kprof_expr_evaluate(rule->roofline->peak.compiled, look_up, from),
        .traffic = kprof_expr_evaluate(rule->roof->traffic.compiled, look_up, from),
        .traffic_peak = kprof_expr_evaluate(rule->roof->peak.compiled, look_up, from),
    });
    return rule->is_pct ? at.pct : at.intensity;
}

/* Did the same launches measure all operands? Those that no launch measured are optional: the formula does without. */
static bool has_operands(const formula *rule, const kprof_rollup_total *totals, const kprof_rolled_up *of)
{
    uint64_t count = 0;
    for (size_t i = 0; i < rule->operand_count; i++) {
        const size_t operand = rule->operands[i];
        if (operand == KPROF_NAMES_NONE || totals[operand].count == 0)
            continue;
        if (of->methods[operand] == KPROF_ROLLUP_NONE || (count > 0 && totals[operand].count != count))
            return false;
        count = totals[operand].count;
    }
    return count > 0 && totals[rule->metric].count > 0;
}

kprof_rolled_up kprof_rollup_finish(const kprof_rollup *rollup, size_t chip, const kprof_rollup_total *totals)
{
    const kprof_rolled_up *out = &rollup->last;
    operand_values from = {rollup->model, out->values};
    for (size_t i = 0; i < rollup->model->metric_count; i++)
        out->values[i] = roll_up(&rollup->rules[i], &totals[i], &out->methods[i]);
    for (size_t i = 0; chip != SIZE_MAX && i < rollup->chips[chip].count; i++) {
        const formula *rule = &rollup->chips[chip].items[i];
        const kprof_rollup_method own = out->methods[rule->metric];
        if (own == KPROF_ROLLUP_SAME || own == KPROF_ROLLUP_MEAN || !has_operands(rule, totals, out))
            continue;
        out->values[rule->metric] = evaluate(rule, &from);
        out->methods[rule->metric] = isnan(out->values[rule->metric]) ? KPROF_ROLLUP_NONE : KPROF_ROLLUP_FORMULA;
    }
    return *out;
}

bool kprof_rollup_is_amount(const kprof_rollup *rollup, size_t metric)
{
    return rollup->rules[metric].adds_up;
}
