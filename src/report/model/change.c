/* Classes of metrics, and the rules that tell a change from noise. */
#include "report/model/change.h"
#include "core/strbuf.h"
#include "report/model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Medians differ by more than noise if they are further apart than this many median deviations of both sides. */
#define DEVIATIONS 3

#define TIME_UNIT "ns"

kprof_metric_class kprof_class_of(const kprof_model_metric *metric)
{
    const char *rollup = strrchr(metric->name, '.');
    const bool is_sum = rollup && strcmp(rollup, ".sum") == 0;
    const bool is_of_sm = kprof_begins_with(metric->name, "sm__") || kprof_begins_with(metric->name, "smsp__") ||
                          kprof_begins_with(metric->name, "l1tex__");
    const bool is_request = strcmp(metric->unit, "request") == 0;
    if (strcmp(metric->kind, "launch") == 0)
        return KPROF_CLASS_EXACT;
    if (is_sum && is_of_sm && (is_request || strcmp(metric->unit, "inst") == 0))
        return KPROF_CLASS_EXACT;
    if (is_sum && (is_request || strcmp(metric->unit, "byte") == 0 || strcmp(metric->unit, "sector") == 0))
        return KPROF_CLASS_TRAFFIC;
    return KPROF_CLASS_NOISY;
}

double kprof_change_pct(const kprof_change *change, double amount)
{
    const double baseline = change->centers[0].median;
    return baseline == 0 ? NAN : amount / fabs(baseline) * 100;
}

bool kprof_change_is_repeated(const kprof_change *change)
{
    return change->centers[0].count >= KPROF_REPEATS_MIN && change->centers[1].count >= KPROF_REPEATS_MIN;
}

static bool is_constant(const kprof_sample *sample)
{
    return KPROF_ALL(i, sample->count, sample->values[i] == sample->values[0]);
}

static bool is_beyond(const kprof_change *change, double tolerance_pct)
{
    return fabs(change->difference) > fabs(change->centers[0].median) * tolerance_pct / 100;
}

/* Keep the numbers whose differences are finite too. */
static size_t keep_finite(kprof_sample *sample)
{
    size_t kept = 0;
    for (size_t i = 0; i < sample->count; i++)
        if (fabs(sample->values[i]) < 1e300)
            sample->values[kept++] = sample->values[i];
    return kept;
}

void kprof_change_of(const kprof_changed_values *values, const kprof_tolerances *tolerances, kprof_change *out)
{
    kprof_sample sides[2] = {values->sides[0], values->sides[1]};
    /* Does each launch have the same value as the launch at the same place in the other report? */
    bool is_same = true;
    for (size_t i = 0; i < sides[0].count && i < sides[1].count; i++)
        is_same = is_same && sides[0].values[i] == sides[1].values[i];
    *out = (kprof_change){.metric_class = values->metric_class, .shift = {NAN, NAN, {NAN, NAN}}};
    for (int side = 0; side < 2; side++)
        sides[side].count = keep_finite(&sides[side]);
    const bool is_exact = values->metric_class == KPROF_CLASS_EXACT && is_constant(&sides[0]) && is_constant(&sides[1]);
    if (values->is_tested)
        kprof_shift_of(sides[0], sides[1], KPROF_CONFIDENCE, &out->shift);
    for (int side = 0; side < 2; side++)
        out->centers[side] = kprof_center_of(sides[side].values, sides[side].count);
    out->difference = out->centers[1].median - out->centers[0].median;
    bool is_real;
    if (is_exact)
        is_real = out->difference != 0;
    else if (values->metric_class == KPROF_CLASS_TRAFFIC)
        is_real = is_beyond(out, tolerances->traffic_pct);
    else
        is_real = !is_same && is_beyond(out, tolerances->time_pct) &&
                  fabs(out->difference) > DEVIATIONS * (out->centers[0].mad + out->centers[1].mad);
    out->state = isnan(out->difference) ? KPROF_CHANGE_UNKNOWN : is_real ? KPROF_CHANGE_REAL : KPROF_CHANGE_NONE;
}

/* The option that takes the condition, and the limits that it may have. */
typedef struct condition_kind {
    const char *option, *limits, *signs, *example;
    bool is_of_changes; /* "%" is of the baseline's median, no unit of the metric */
} condition_kind;
static const condition_kind fail_on_kind = {"--fail-on", "METRIC>NUMBER%, METRIC>NUMBERUNIT, METRIC>NUMBER",
                                            ">=, < or <=", "dram__bytes_read.sum>+3%", true};
static const condition_kind filter_kind = {"--filter", "METRIC>NUMBER, METRIC>NUMBERUNIT",
                                           ">=, <, <= or ==", "duration>10us", false};

typedef struct condition_text {
    const condition_kind *kind;
    const char *text;
} condition_text;

static kprof_status refuse(const condition_text *from, const char *part, const char *why)
{
    return kprof_fail(KPROF_USAGE, "%s \"%s\": \"%s\" is %s; give %s or the same with %s, such as \"%s\"",
                      from->kind->option, from->text, part, why, from->kind->limits, from->kind->signs,
                      from->kind->example);
}

/* A copy without the blanks around it. */
static char *trimmed(const char *text, size_t length)
{
    for (; length > 0 && *text == ' '; length--)
        text++;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return kprof_strndup(text, length);
}

/* A number with or without sign and decimals, and what may stand behind it. */
static bool parse_limit(const condition_kind *kind, const char *text, kprof_condition *out)
{
    const char *at = text + (*text == '+' || *text == '-');
    const size_t whole = strspn(at, "0123456789");
    const char *rest = at[whole] == '.' ? at + whole + 1 : at + whole;
    const size_t fraction = at[whole] == '.' ? strspn(rest, "0123456789") : 0;
    rest += fraction;
    rest += strspn(rest, " ");
    out->is_pct = kind->is_of_changes && strcmp(rest, "%") == 0;
    out->limit = strtod(text, NULL);
    const bool fits = strlen(rest) < sizeof out->unit;
    if (fits && !out->is_pct)
        strcpy(out->unit, rest);
    return whole + fraction > 0 && fits && isfinite(out->limit);
}

static kprof_status parse_parts(const condition_text *from, kprof_condition *out)
{
    const char *text = from->text, *sign = text + strcspn(text, "<>=");
    const bool is_above = *sign == '>', has_equal = *sign && sign[1] == '=';
    if (!*sign || (*sign == '=' && (!has_equal || from->kind->is_of_changes)))
        return refuse(from, text, "no comparison");
    out->comparator = is_above ? (has_equal ? KPROF_AT_LEAST : KPROF_ABOVE) : has_equal ? KPROF_AT_MOST : KPROF_BELOW;
    if (*sign == '=')
        out->comparator = KPROF_EQUAL;
    const char *rest = sign + (has_equal ? 2 : 1);
    KPROF_AUTO_FREE char *limit = trimmed(rest, strlen(rest));
    out->text = kprof_strdup(text);
    out->metric = trimmed(text, (size_t)(sign - text));
    if (out->metric && strcmp(out->metric, "duration") == 0) {
        free(out->metric);
        out->metric = kprof_strdup(KPROF_TIME_METRIC);
    }
    if (!*out->metric)
        return refuse(from, text, "a comparison of no metric");
    if (!parse_limit(from->kind, limit, out))
        return refuse(from, limit, "no number with or without unit");
    return KPROF_OK;
}

/* "duration>5" may mean 5 % or 5 us, and hardly means 5 ns. */
static kprof_status ask_for_unit(const char *text)
{
    const char *sign = strpbrk(text, "<>"), *limit = sign + strspn(sign, "<>= ");
    const bool is_signed = *limit == '+' || *limit == '-';
    KPROF_AUTO(kprof_strbuf) same = KPROF_STRBUF_INIT;
    if (!is_signed)
        kprof_strbuf_printf(&same, " or \"%.*s+%s%%\"", (int)(limit - text), text, limit);
    return kprof_fail(KPROF_USAGE,
                      "--fail-on \"%s\": the limit has no unit; give \"%s%%\"%s for percent of the "
                      "baseline, or \"%sus\" for a time (in ns, us, ms or s)",
                      text, text, kprof_strbuf_text(&same), text);
}

kprof_status kprof_condition_settle_unit(kprof_condition *condition, const char *base_unit)
{
    double factor;
    if (condition->is_pct || (!*condition->unit && condition->limit == 0))
        return KPROF_OK;
    if (!*condition->unit && strcmp(base_unit, TIME_UNIT) == 0)
        return ask_for_unit(condition->text);
    if (!kprof_units_parse(condition->unit, base_unit, &factor))
        return kprof_fail(KPROF_USAGE,
                          "--fail-on \"%s\": \"%s\" is no unit of %s; give %% for percent of the baseline%s%s",
                          condition->text, condition->unit, condition->metric,
                          *base_unit ? ", or its unit " : ", or a number alone", base_unit);
    condition->limit *= factor;
    snprintf(condition->unit, sizeof condition->unit, "%s", base_unit);
    return KPROF_OK;
}

kprof_status kprof_condition_parse(const char *text, kprof_condition *out)
{
    *out = (kprof_condition){0};
    kprof_status status = parse_parts(&(condition_text){&fail_on_kind, text}, out);
    if (status != KPROF_OK || strcmp(out->metric, KPROF_TIME_METRIC) != 0)
        return status;
    return kprof_condition_settle_unit(out, TIME_UNIT);
}

kprof_status kprof_condition_parse_filter(const char *text, kprof_condition *out)
{
    *out = (kprof_condition){0};
    kprof_status status = parse_parts(&(condition_text){&filter_kind, text}, out);
    const bool is_time = status == KPROF_OK && strcmp(out->metric, KPROF_TIME_METRIC) == 0;
    if (is_time && !*out->unit && out->limit != 0)
        status = kprof_fail(KPROF_USAGE, "--filter \"%s\": the limit has no unit; give \"%sus\", or ns, ms or s", text,
                            text);
    return status;
}

void kprof_condition_free(kprof_condition *condition)
{
    KPROF_FREE(condition->text, condition->metric);
}

bool kprof_condition_is_met(const kprof_condition *condition, double amount)
{
    const double limit = condition->limit;
    const bool met[] = {[KPROF_ABOVE] = amount > limit,
                        [KPROF_AT_LEAST] = amount >= limit,
                        [KPROF_BELOW] = amount < limit,
                        [KPROF_AT_MOST] = amount <= limit,
                        [KPROF_EQUAL] = amount == limit};
    return met[condition->comparator];
}

/* The change in the unit of the limit. A rise from 0 counts as infinitely large. */
static double scaled(const kprof_condition *condition, const kprof_change *change, double amount)
{
    if (!condition->is_pct || amount == 0)
        return amount;
    return change->centers[0].median == 0 ? copysign(INFINITY, amount) : kprof_change_pct(change, amount);
}

kprof_gate kprof_condition_check(const kprof_condition *condition, const kprof_change *change, double p)
{
    if (change->state == KPROF_CHANGE_UNKNOWN)
        return KPROF_GATE_INCONCLUSIVE;
    if (change->metric_class != KPROF_CLASS_NOISY)
        return kprof_condition_is_met(condition, scaled(condition, change, change->difference)) ? KPROF_GATE_FAILED
                                                                                                : KPROF_GATE_PASSED;
    if (!kprof_change_is_repeated(change) || isnan(change->shift.interval.low))
        return KPROF_GATE_INCONCLUSIVE;
    const bool low = kprof_condition_is_met(condition, scaled(condition, change, change->shift.interval.low));
    const bool high = kprof_condition_is_met(condition, scaled(condition, change, change->shift.interval.high));
    if (low && high && p < 1 - KPROF_CONFIDENCE)
        return KPROF_GATE_FAILED;
    return low || high ? KPROF_GATE_INCONCLUSIVE : KPROF_GATE_PASSED;
}
