/* Evaluates findings for the values of a launch, and sums them up in a verdict. */
#include "report/model/findings.h"
#include "report/model/code.h"
#include "report/model/units.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One finding with what it needs to be evaluated again and again. */
typedef struct bound_finding {
    const kprof_finding *finding;
    size_t *columns; /* [operands.count] of the model's metrics; KPROF_NAMES_NONE: the report has no such metric */
    double *least;   /* [operands.count]: no launch has less of it; -INFINITY: it may be below 0 */
    kprof_code_counter *counters; /* [operands.count] of instructions; KPROF_COUNTER_NONE: the name is of none */
    double *values;               /* as of kprof_found */
    size_t *options;
    size_t *unless; /* [unless_count] of the rules: where one of them is found, this one is not reported */
    size_t unless_count;
} bound_finding;

struct kprof_rules {
    bound_finding *rules; /* [findings.count] */
    kprof_found *found;
    bool *is_found; /* [findings.count]: the condition holds */
    kprof_findings findings;
};

/* A finding that was not evaluated hides no other finding. */
static void bind_unless(bound_finding *out, const kprof_finding_list *findings, kprof_pool *pool)
{
    char *const *ids = out->finding->unless;
    out->unless = kprof_pool_calloc(pool, kprof_strings_count(ids) + 1, sizeof *out->unless);
    for (; ids && *ids; ids++) {
        const size_t i = KPROF_FIND(k, findings->count, strcmp(findings->items[k]->id, *ids) == 0);
        if (i < findings->count)
            out->unless[out->unless_count++] = i;
    }
}

/* No counter is below 0, and a launch that ran has taken time and cycles. Differences may be below 0. */
static double least_of(const kprof_model *model, size_t column, const char *name)
{
    if (column == KPROF_NAMES_NONE || strcmp(model->metrics[column].kind, "hardware") != 0)
        return -INFINITY;
    return strcmp(name, "gpu__time_duration.sum") == 0 || strstr(name, "cycles_elapsed.") ? DBL_MIN : 0;
}

static void make_rule(bound_finding *out, const kprof_finding *finding, const kprof_model *model)
{
    const size_t operands = finding->operands.count;
    out->finding = finding;
    out->columns = kprof_pool_calloc(model->pool, operands + 1, sizeof *out->columns);
    out->least = kprof_pool_calloc(model->pool, operands + 1, sizeof *out->least);
    out->counters = kprof_pool_calloc(model->pool, operands + 1, sizeof *out->counters);
    out->values = kprof_pool_calloc(model->pool, finding->threshold_count + finding->value_count + operands + 1,
                                    sizeof *out->values);
    out->options = kprof_pool_calloc(model->pool, finding->value_count + 1, sizeof *out->options);
    for (size_t i = 0; i < operands; i++) {
        out->columns[i] = kprof_names_find(&model->metric_names, finding->operands.items[i]);
        out->least[i] = least_of(model, out->columns[i], finding->operands.items[i]);
        out->counters[i] = kprof_code_counter_find(finding->operands.items[i]);
    }
    for (size_t i = 0; i < finding->threshold_count; i++)
        out->values[i] = finding->thresholds[i].value;
}

kprof_rules *kprof_rules_new(const kprof_finding_list *findings, const kprof_model *model)
{
    kprof_rules *rules = kprof_pool_calloc(model->pool, 1, sizeof *rules);
    rules->rules = kprof_pool_calloc(model->pool, findings->count + 1, sizeof *rules->rules);
    rules->found = kprof_pool_calloc(model->pool, findings->count + 1, sizeof *rules->found);
    rules->is_found = kprof_pool_calloc(model->pool, findings->count + 1, sizeof *rules->is_found);
    for (size_t i = 0; i < findings->count; i++) {
        make_rule(&rules->rules[i], findings->items[i], model);
        bind_unless(&rules->rules[i], findings, model->pool);
    }
    rules->findings = (kprof_findings){.items = rules->found, .count = findings->count};
    return rules;
}

/* If the value of a condition is missing, its option may or may not apply. Where options are tried in turn, take no
 * later one then. */
static double pick(const kprof_finding_value *value, const double *values, size_t *chosen)
{
    double best = NAN;
    for (size_t i = 0; i < value->option_count; i++) {
        const kprof_finding_option *option = &value->options[i];
        const double condition = option->when ? kprof_expr_compute(option->when, values) : 1;
        const double number = option->value ? kprof_expr_compute(option->value, values) : (double)i + 1;
        if (value->pick == KPROF_PICK_FIRST && isnan(condition))
            return NAN;
        if (isnan(condition) || condition == 0 || (isnan(number) && value->pick != KPROF_PICK_FIRST))
            continue;
        if (isnan(best) || (value->pick == KPROF_PICK_LARGEST ? number > best : number < best)) {
            best = number;
            *chosen = i;
        }
        if (value->pick == KPROF_PICK_FIRST)
            return number;
    }
    return best;
}

static void compute_values(const bound_finding *rule)
{
    const kprof_finding *finding = rule->finding;
    double *values = rule->values + finding->threshold_count;
    for (size_t i = 0; i < finding->value_count; i++) {
        const kprof_finding_value *value = &finding->values[i];
        rule->options[i] = SIZE_MAX;
        values[i] = value->pick == KPROF_PICK_NONE ? kprof_expr_compute(value->expression, rule->values)
                                                   : pick(value, rule->values, &rule->options[i]);
    }
}

static double as_share(double pct)
{
    return pct < 0 ? 0 : pct > 100 ? 100 : pct;
}

/* A value that no launch can have is no evidence: it counts as missing. */
static double operand_of(const bound_finding *rule, size_t index, const double *values, const double *counters)
{
    double value = rule->columns[index] == KPROF_NAMES_NONE ? NAN : values[rule->columns[index]];
    value = isfinite(value) && value >= rule->least[index] ? value : NAN;
    const kprof_code_counter counter = rule->counters[index];
    return isnan(value) && counters && counter != KPROF_COUNTER_NONE ? counters[counter] : value;
}

static void put_number(const kprof_found *found, size_t local, bool base_units, kprof_strbuf *out)
{
    const kprof_finding *finding = found->finding;
    const char *unit = local < finding->threshold_count ? finding->thresholds[local].unit
                                                        : finding->values[local - finding->threshold_count].unit;
    kprof_human human = kprof_units_human(found->values[local], unit, base_units);
    kprof_human_put(&human, out);
    const size_t letters = strspn(human.unit, "abcdefghijklmnopqrstuvwxyz");
    const bool is_word = letters > 3 && human.unit[letters] == '\0'; /* other units are signs */
    kprof_strbuf_puts(out, is_word && strcmp(human.number, "1") != 0 ? "s" : "");
}

/* A text being put together. Texts of options may contain texts of options before them and grow exponentially, so the
 * number of parts is limited. */
enum { MAX_PARTS = 1000 };
typedef struct rendering {
    const kprof_found *found;
    bool base_units;
    kprof_strbuf *out; /* NULL: look for the greatest share alone */
    size_t parts;      /* so far */
    double greatest_pct;
} rendering;

static void take_number(rendering *to, size_t local)
{
    const kprof_finding *finding = to->found->finding;
    if (to->out)
        put_number(to->found, local, to->base_units, to->out);
    else if (local >= finding->threshold_count &&
             strcmp(finding->values[local - finding->threshold_count].unit, "%") == 0)
        to->greatest_pct = fmax(to->greatest_pct, to->found->values[local]);
}

static void put_text(rendering *to, const char *text)
{
    const kprof_finding *finding = to->found->finding;
    while (text && *text && to->parts < MAX_PARTS) {
        const kprof_text_part part = kprof_finding_text_part(finding, &text);
        to->parts++;
        if (part.kind == KPROF_PART_TEXT && to->out)
            kprof_strbuf_append(to->out, part.text, part.length);
        if (part.kind == KPROF_PART_NUMBER)
            take_number(to, part.local);
        if (part.kind == KPROF_PART_TEXT || part.kind == KPROF_PART_NUMBER)
            continue;
        const size_t index = part.local - finding->threshold_count;
        const size_t option = to->found->options[index];
        const kprof_finding_option *chosen = option == SIZE_MAX ? NULL : &finding->values[index].options[option];
        if (chosen)
            put_text(to, part.kind == KPROF_PART_NAME ? chosen->name : chosen->text);
        else if (to->out)
            kprof_strbuf_puts(to->out, "n/a");
    }
}

/* Counters of several passes disagree by some per cent, and a share may be one of a peak that is not quite the highest.
 * A share of a hundred times all is neither: some value is impossible, so the finding says nothing. */
static void refuse_impossible(kprof_found *found)
{
    enum { IMPOSSIBLE_PCT = 10000 };
    rendering look = {.found = found};
    if (found->state == KPROF_FOUND)
        put_text(&look, found->finding->message);
    put_text(&look, found->finding->verdict_text);
    if (look.greatest_pct <= IMPOSSIBLE_PCT)
        return;
    found->state = KPROF_FOUND_UNKNOWN;
    found->impossible_pct = look.greatest_pct;
    found->gain_pct = found->unbounded_pct = NAN;
}

static kprof_found evaluate(const bound_finding *rule, const double *values, const double *counters)
{
    const kprof_finding *finding = rule->finding;
    double *operands = rule->values + finding->threshold_count + finding->value_count;
    kprof_found found = {finding, KPROF_FOUND_UNKNOWN, rule->values, rule->options, NAN, NAN, NAN, false, NULL, 0, 0};
    for (size_t i = 0; i < finding->operands.count; i++)
        operands[i] = operand_of(rule, i, values, counters);
    compute_values(rule);
    const double condition = kprof_expr_compute(finding->when, rule->values);
    if (!isnan(condition))
        found.state = condition != 0 ? KPROF_FOUND : KPROF_FOUND_NOTHING;
    if (found.state != KPROF_FOUND_UNKNOWN)
        refuse_impossible(&found);
    found.is_symptom = finding->symptom ? kprof_expr_compute(finding->symptom, rule->values) != 0 : finding->is_symptom;
    if (found.state != KPROF_FOUND || !finding->gain)
        return found;
    const double bound = finding->gain_bound ? kprof_expr_compute(finding->gain_bound, rule->values) : 100;
    found.unbounded_pct = as_share(kprof_expr_compute(finding->gain, rule->values));
    found.gain_pct = found.unbounded_pct > bound ? as_share(bound) : found.unbounded_pct;
    if (isnan(found.gain_pct) && finding->severity) {
        const double severity = kprof_expr_compute(finding->severity, rule->values);
        found.severity_pct = as_share(severity > bound ? bound : severity);
    }
    return found;
}

/* Do not show findings that another one makes meaningless. That other one counts even when it is not shown itself. */
static void hold_back(kprof_rules *rules)
{
    for (size_t i = 0; i < rules->findings.count; i++)
        rules->is_found[i] = rules->found[i].state == KPROF_FOUND;
    for (size_t i = 0; i < rules->findings.count; i++) {
        const bound_finding *rule = &rules->rules[i];
        for (size_t k = 0; k < rule->unless_count && rules->is_found[i]; k++) {
            if (!rules->is_found[rule->unless[k]] || rule->unless[k] == i)
                continue;
            rules->found[i].state = KPROF_FOUND_NOTHING;
            rules->found[i].gain_pct = rules->found[i].unbounded_pct = rules->found[i].severity_pct = NAN;
        }
    }
}

/* How findings are ranked, the least first; docs/metricsets.md explains it. */
typedef enum finding_rank {
    GAINS_NOTHING, /* as it says itself */
    NOT_KNOWN,     /* neither gain nor severity */
    OF_A_PART,     /* which no share of the kernel's time can be compared with */
    LITTLE_SEVERITY,
    LITTLE_GAIN,
    SEVERE_SYMPTOM,
    MUCH, /* as gain, or as severity of what is no symptom */
} finding_rank;

static double worth_of(const kprof_found *found)
{
    return isnan(found->gain_pct) ? found->severity_pct : found->gain_pct;
}

/* A symptom goes where its cause goes. */
static double weight(const kprof_found *found, double pct)
{
    return found->is_symptom ? pct / 3 : pct;
}

static finding_rank rank_of(const kprof_found *found)
{
    enum { LITTLE_PCT = 10 };
    const double worth = weight(found, worth_of(found));
    const bool is_estimated = !isnan(found->gain_pct);
    if (found->unbounded_pct == 0)
        return GAINS_NOTHING;
    if (isnan(worth))
        return NOT_KNOWN;
    if (found->finding->gain_is_local)
        return OF_A_PART;
    if (worth < LITTLE_PCT)
        return is_estimated ? LITTLE_GAIN : LITTLE_SEVERITY;
    return found->is_symptom && !is_estimated ? SEVERE_SYMPTOM : MUCH;
}

bool kprof_found_is_worth_more(const kprof_found *found, const kprof_found *other)
{
    const finding_rank rank = rank_of(found), other_rank = rank_of(other);
    if (rank != other_rank)
        return rank > other_rank;
    if (rank == NOT_KNOWN && found->is_symptom != other->is_symptom)
        return other->is_symptom;
    if (rank == NOT_KNOWN)
        return found->finding->confidence > other->finding->confidence;
    const double worth = weight(found, worth_of(found)), other_worth = weight(other, worth_of(other));
    return worth != other_worth ? worth > other_worth
                                : weight(found, found->unbounded_pct) > weight(other, other->unbounded_pct);
}

/* The limit, if the kernel is near it and no finding gains more than the distance left to it, as doing less work can.
 */
static const kprof_found *find_near(const kprof_verdict *verdict)
{
    const kprof_found *limit = verdict->lines[KPROF_VERDICT_LIMIT], *best = verdict->best;
    if (!limit || !limit->finding->near)
        return NULL;
    const double is_near = kprof_expr_compute(limit->finding->near, limit->values);
    if (isnan(is_near) || is_near == 0)
        return NULL;
    const double left_pct =
        fmax(100 - limit->values[limit->finding->threshold_count + limit->finding->verdict_value], 0);
    return best && !best->finding->gain_is_local && worth_of(best) > left_pct ? NULL : limit;
}

/* Findings about less work are those whose gain has no bound. */
static bool is_of_less_work(const kprof_finding *finding)
{
    return finding->gain && !finding->gain_bound && !finding->gain_is_local;
}

/* Findings with a gain whose metrics are missing: all of them, or those about less work. */
static size_t count_lacking(const kprof_findings *findings, bool of_less_work)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const kprof_found *found = &findings->items[i];
        KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
        if (found->state != KPROF_FOUND_UNKNOWN || !found->finding->gain ||
            (of_less_work && !is_of_less_work(found->finding)))
            continue;
        kprof_found_missing(found, &missing);
        count += missing.count > 0;
    }
    return count;
}

const char *kprof_verdict_little_to_gain(const kprof_verdict *verdict)
{
    return !verdict->near ? "no" : verdict->near_is_unsure ? "as measured" : "yes";
}

static void add_to_verdict(kprof_verdict *verdict, const kprof_found *found)
{
    const kprof_finding *finding = found->finding;
    const kprof_verdict_line line = finding->verdict;
    if (line != KPROF_VERDICT_NONE && !verdict->lines[line]) {
        const size_t told = finding->threshold_count + finding->verdict_value;
        if (found->state != KPROF_FOUND_UNKNOWN && (finding->verdict_value == SIZE_MAX || !isnan(found->values[told])))
            verdict->lines[line] = found;
        else if (!verdict->unknown[line])
            verdict->unknown[line] = found;
    }
    if (found->state == KPROF_FOUND && line != KPROF_VERDICT_LIMIT && found->unbounded_pct != 0 &&
        (!verdict->best || kprof_found_is_worth_more(found, verdict->best)))
        verdict->best = found;
}

const char *kprof_found_next(const kprof_found *found)
{
    const char *text = found ? found->finding->next : NULL;
    if (!text || *text != '{')
        return text;
    const kprof_text_part part = kprof_finding_text_part(found->finding, &text);
    const size_t index = part.local - found->finding->threshold_count;
    const size_t option = found->options[index];
    return option == SIZE_MAX ? NULL : found->finding->values[index].options[option].name;
}

const kprof_findings *kprof_rules_apply(kprof_rules *rules, const double *values, const double *counters)
{
    kprof_verdict *verdict = &rules->findings.verdict;
    *verdict = (kprof_verdict){0};
    for (size_t i = 0; i < rules->findings.count; i++)
        rules->found[i] = evaluate(&rules->rules[i], values, counters);
    hold_back(rules);
    for (size_t i = 0; i < rules->findings.count; i++)
        add_to_verdict(verdict, &rules->found[i]);
    verdict->near = find_near(verdict);
    verdict->near_is_unsure = verdict->near && count_lacking(&rules->findings, true) > 0;
    verdict->next = verdict->near || !verdict->best ? NULL : verdict->best->finding->sections[0];
    if (!verdict->next)
        verdict->next = kprof_found_next(verdict->lines[KPROF_VERDICT_LIMIT]);
    return &rules->findings;
}

const kprof_findings *kprof_rules_findings(const kprof_rules *rules)
{
    return &rules->findings;
}

void kprof_rules_place(kprof_rules *rules, size_t index, const struct kprof_found_place *places, size_t count)
{
    rules->found[index].places = places;
    rules->found[index].place_count = count;
}

const char *kprof_confidence_name(kprof_confidence confidence)
{
    return confidence == KPROF_CONFIDENCE_HIGH ? "high" : confidence == KPROF_CONFIDENCE_MEDIUM ? "medium" : "low";
}

void kprof_found_text(const kprof_found *found, const char *text, bool base_units, kprof_strbuf *out)
{
    put_text(&(rendering){.found = found, .base_units = base_units, .out = out}, text);
}

void kprof_found_say(const kprof_found *found, bool base_units, kprof_strbuf *out)
{
    kprof_found_text(found, found->finding->message, base_units, out);
    kprof_strbuf_puts(out, found->finding->advice ? " " : "");
    kprof_found_text(found, found->finding->advice, base_units, out);
    kprof_strbuf_puts(out, found->place_count > 0 ? " " : "");
    kprof_found_where(found, out);
}

/* ": up to 12.50 % of the time"; nothing without an estimate. Many findings of a launch may share a bound. */
static void put_gain(const kprof_found *found, kprof_strbuf *out)
{
    if (found->gain_pct == 0)
        kprof_strbuf_puts(out, ": no gain");
    if (isnan(found->gain_pct) || found->gain_pct == 0)
        return;
    kprof_human human = kprof_units_human(found->gain_pct, "%", false);
    kprof_strbuf_printf(out, ": up to %s %s of %s%s", human.number, human.unit,
                        found->finding->gain_is_local ? "the time of that part" : "the time",
                        found->unbounded_pct > found->gain_pct ? " (all that is left to the peak)" : "");
}

void kprof_found_describe(const kprof_found *found, kprof_strbuf *out)
{
    put_gain(found, out);
    kprof_strbuf_printf(out, "%s%s confidence", isnan(found->gain_pct) ? ": " : ", ",
                        kprof_confidence_name(found->finding->confidence));
}

void kprof_found_option(const kprof_found *found, size_t index, bool base_units, kprof_strbuf *out)
{
    if (found->options[index] != SIZE_MAX)
        kprof_found_text(found, found->finding->values[index].options[found->options[index]].name, base_units, out);
}

typedef struct missing_search {
    const kprof_found *found;
    kprof_strlist *names;
    bool *seen; /* [threshold_count + value_count]: those looked into, each once */
} missing_search;

/* One of the finding's own values is missing because others are. */
static void add_missing(void *user, size_t slot)
{
    missing_search *search = user;
    const kprof_found *found = search->found;
    const kprof_finding *finding = found->finding;
    const size_t locals = finding->threshold_count + finding->value_count;
    if (slot >= locals) {
        kprof_strlist_add_unique(search->names, finding->operands.items[slot - locals]);
        return;
    }
    if (search->seen[slot])
        return;
    search->seen[slot] = true;
    const kprof_finding_value *value = &finding->values[slot - finding->threshold_count];
    if (value->expression)
        kprof_expr_missing(value->expression, found->values, add_missing, search);
    for (size_t i = 0; i < value->option_count; i++) {
        if (value->options[i].value)
            kprof_expr_missing(value->options[i].value, found->values, add_missing, search);
        if (value->options[i].when)
            kprof_expr_missing(value->options[i].when, found->values, add_missing, search);
    }
}

void kprof_found_missing(const kprof_found *found, kprof_strlist *out)
{
    const kprof_finding *finding = found->finding;
    missing_search search = {found, out,
                             kprof_calloc(finding->threshold_count + finding->value_count + 1, sizeof(bool))};
    if (!(found->impossible_pct > 0))
        kprof_expr_missing(finding->when, found->values, add_missing, &search);
    free(search.seen);
}

void kprof_found_why_not(const kprof_found *found, kprof_strbuf *out)
{
    if (!(found->impossible_pct > 0))
        return;
    const kprof_human share = kprof_units_human(found->impossible_pct, "%", false);
    kprof_strbuf_puts(out, "a share of ");
    kprof_human_put(&share, out);
    kprof_strbuf_puts(out, " is impossible");
}

static void describe_line(const kprof_findings *findings, kprof_verdict_line line, bool base_units,
                          kprof_verdict_text *out)
{
    const kprof_found *known = findings->verdict.lines[line], *unknown = findings->verdict.unknown[line];
    if (known) {
        const kprof_finding *finding = known->finding;
        kprof_found_text(known, finding->verdict_name, base_units, &out->name);
        kprof_found_text(known, finding->verdict_text, base_units, &out->text);
        if (finding->verdict_value != SIZE_MAX)
            out->value = known->values[finding->threshold_count + finding->verdict_value];
    } else if (unknown && unknown->impossible_pct > 0) {
        out->is_known = false;
        kprof_strbuf_puts(&out->text, "not known: ");
        kprof_found_why_not(unknown, &out->text);
    } else if (unknown) {
        out->is_known = false;
        kprof_strbuf_printf(&out->text, "not known; collect --section %s", unknown->finding->sections[0]);
    }
}

/* A kernel near its limit has little to gain, whatever the findings say. */
static void describe_best(const kprof_findings *findings, bool base_units, kprof_verdict_text *out)
{
    const kprof_verdict *verdict = &findings->verdict;
    const kprof_found *best = verdict->best, *near = verdict->near;
    out->is_known = best || near;
    if (best) {
        kprof_strbuf_puts(&out->name, best->finding->id);
        out->value = best->gain_pct;
    }
    if (near) {
        kprof_found_text(near, near->finding->near_text, base_units, &out->text);
        kprof_strbuf_puts(&out->text, verdict->near_is_unsure ? "; what was not measured may be worth more" : "");
    } else if (best) {
        kprof_strbuf_puts(&out->text, best->finding->name);
        if (isnan(best->gain_pct))
            kprof_strbuf_puts(&out->text, " (no estimate)");
        put_gain(best, &out->text);
    } else {
        kprof_strbuf_puts(&out->text, "no finding");
    }
    const size_t lacking = near ? 0 : count_lacking(findings, false);
    if (lacking > 0)
        kprof_strbuf_printf(&out->text, "; --set full looks for %zu more finding%s", lacking, lacking == 1 ? "" : "s");
}

kprof_verdict_text kprof_verdict_describe(const kprof_findings *findings, kprof_verdict_row row, bool base_units)
{
    static const struct {
        const char *key, *label;
        kprof_verdict_line line;
    } rows[] = {
        [KPROF_ROW_LIMIT] = {"limit", "Limited by", KPROF_VERDICT_LIMIT},
        [KPROF_ROW_STALL] = {"stall", "Top stall", KPROF_VERDICT_STALL},
        [KPROF_ROW_OCCUPANCY] = {"occupancy", "Occupancy", KPROF_VERDICT_OCCUPANCY},
        [KPROF_ROW_BEST] = {"finding", "Worth most", KPROF_VERDICT_NONE},
        [KPROF_ROW_NEXT] = {"next", "Look next", KPROF_VERDICT_NONE},
    };
    kprof_verdict_text out = {rows[row].key, rows[row].label, NAN, true, KPROF_STRBUF_INIT, KPROF_STRBUF_INIT};
    if (rows[row].line != KPROF_VERDICT_NONE)
        describe_line(findings, rows[row].line, base_units, &out);
    else if (row == KPROF_ROW_BEST)
        describe_best(findings, base_units, &out);
    if (row != KPROF_ROW_NEXT)
        return out;
    const char *next = findings->verdict.next;
    out.is_known = next != NULL;
    kprof_strbuf_puts(&out.name, next ? next : "");
    if (next)
        kprof_strbuf_printf(&out.text, "section %s", next);
    return out;
}

void kprof_verdict_text_free(kprof_verdict_text *row)
{
    KPROF_FREE_TEXTS(&row->name, &row->text);
}

const char *kprof_verdict_known_text(const kprof_verdict_text *row)
{
    return row->is_known ? kprof_strbuf_or_null(&row->text) : NULL;
}
