/* Scales base units in steps and spells the scaled unit. */
#include "report/model/units.h"
#include "core/clean.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A unit that scales: `base` is the start of the base unit and `symbol` what a prefix goes before. */
typedef struct scaled_unit {
    const char *base, *symbol;
    bool whole_only; /* only as the whole unit, not before "/something" */
} scaled_unit;

static const scaled_unit scaled_units[] = {
    {"cycle/second", "Hz", true}, {"hz", "Hz", true},  {"byte", "B", false},
    {"flop", "FLOP", false},      {"op", "OP", false},
};
static const char *const times[] = {"ns", "us", "ms", "s"};
static const char *const prefixes[] = {"", "K", "M", "G", "T", "P", "E"};

/* Write value and unit with two decimals when it is not whole; small values keep three significant digits. */
static void put_number(kprof_human *human, double value)
{
    if (value != 0 && fabs(value) < 0.01)
        kprof_number_general(human->number, value, 3);
    else
        kprof_number_grouped(human->number, value, (kprof_number_style){.decimals = 2});
}

static const scaled_unit *find_scaled(const char *unit)
{
    for (size_t i = 0; i < COUNT_OF(scaled_units); i++) {
        size_t length = strlen(scaled_units[i].base);
        if (strncmp(unit, scaled_units[i].base, length) != 0)
            continue;
        if (unit[length] == '\0' || (unit[length] == '/' && !scaled_units[i].whole_only))
            return &scaled_units[i];
    }
    return NULL;
}

/* Bring a value below 1000, or by all of `count` prefixes. Return the number of its prefix. */
static size_t put_scaled(kprof_human *human, double value, size_t count)
{
    size_t step = 0;
    for (; fabs(value) >= 1000 && step + 1 < count; step++)
        value /= 1000;
    put_number(human, value);
    return step;
}

static void scale_prefixed(kprof_human *human, double value, const char *unit)
{
    const scaled_unit *scaled = find_scaled(unit);
    const char *rest = unit + (scaled ? strlen(scaled->base) : 0);
    const size_t step = put_scaled(human, value, COUNT_OF(prefixes));
    if (scaled)
        snprintf(human->unit, sizeof human->unit, "%s%s%.20s", step == 1 && scaled->whole_only ? "k" : prefixes[step],
                 scaled->symbol, strcmp(rest, "/second") == 0 ? "/s" : rest);
    else /* a rate of something else: "Ginst/s" */
        snprintf(human->unit, sizeof human->unit, "%s%.*s/s", prefixes[step], (int)(strlen(unit) - strlen("/second")),
                 unit);
}

static bool is_rate(const char *unit)
{
    size_t length = strlen(unit), suffix = strlen("/second");
    return length > suffix && length < 32 && strcmp(unit + length - suffix, "/second") == 0;
}

/* Drop the last character where it was cut. */
static void end_whole(char *unit)
{
    size_t start = strlen(unit), length = 0;
    while (start > 0 && kprof_utf8_continues(unit[start - 1]))
        start--, length++;
    if (start == 0 || (unsigned char)unit[start - 1] < 0xc0)
        return;
    const unsigned char lead = (unsigned char)unit[start - 1];
    if (length < (lead >= 0xf0 ? 3u : lead >= 0xe0 ? 2u : 1u))
        unit[start - 1] = '\0';
}

kprof_human kprof_units_human(double value, const char *unit, bool base)
{
    kprof_human human = {"n/a", ""};
    if (isnan(value))
        return human;
    if (isfinite(value) && !base && strcmp(unit, "ns") == 0) {
        snprintf(human.unit, sizeof human.unit, "%s", times[put_scaled(&human, value, COUNT_OF(times))]);
    } else if (isfinite(value * 1000) && !base && strcmp(unit, "khz") == 0) {
        scale_prefixed(&human, value * 1000, "hz");
    } else if (isfinite(value) && !base && (find_scaled(unit) || is_rate(unit))) {
        scale_prefixed(&human, value, unit);
    } else {
        put_number(&human, value);
        snprintf(human.unit, sizeof human.unit, "%.39s", unit);
    }
    end_whole(human.unit);
    return human;
}

void kprof_human_put(const kprof_human *human, kprof_strbuf *out)
{
    kprof_strbuf_printf(out, "%s%s%s", human->number, *human->unit ? " " : "", human->unit);
}

/* A unit is one that a value of some size is shown with. */
bool kprof_units_parse(const char *text, const char *unit, double *factor)
{
    *factor = 1;
    if (!*text || strcmp(text, unit) == 0)
        return true;
    for (int step = 0; step < 8; step++, *factor *= 1000) {
        const kprof_human human = kprof_units_human(*factor, unit, false);
        const bool is_scaled = strcmp(human.number, "1") == 0; /* else there are no larger units */
        if (is_scaled && *human.unit && strcasecmp(text, human.unit) == 0)
            return true;
    }
    return false;
}

double kprof_units_ncu_scale(double value, const char *unit, char *out, size_t size)
{
    const bool is_khz = strcmp(unit, "khz") == 0, is_time = strcmp(unit, "ns") == 0;
    const bool scales = isfinite(value) && (is_khz || is_time || find_scaled(unit) || is_rate(unit));
    const size_t most = !scales ? 0 : is_time ? COUNT_OF(times) - 1 : COUNT_OF(prefixes) - 1;
    double factor = is_khz && scales ? 0.001 : 1;
    size_t step = 0;
    for (; step < most && fabs(value / factor) >= 1000; step++)
        factor *= 1000;
    char base[KPROF_NCU_UNIT_SIZE];
    kprof_units_ncu(is_khz && scales ? "hz" : unit, base, sizeof base);
    if (is_time && scales)
        snprintf(out, size, "%s", times[step]);
    else
        snprintf(out, size, "%s%s", prefixes[step], base);
    end_whole(out);
    return factor;
}

void kprof_units_ncu(const char *unit, char *out, size_t size)
{
    size_t length = strlen(unit), suffix = strlen("/second");
    if (strcmp(unit, "cycle/second") == 0)
        snprintf(out, size, "hz");
    else if (length > suffix && strcmp(unit + length - suffix, "/second") == 0)
        snprintf(out, size, "%.*s/s", (int)(length - suffix), unit);
    else
        snprintf(out, size, "%s", unit);
}
