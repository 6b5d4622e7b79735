/* Adds up the metrics that a finding names over each line, and tells the lines that have most of them. */
#include "report/model/places.h"

#include "metricset/instruction.h"

#include <math.h>
#include <string.h>

#define LEAST_SHARE_PCT 10.0 /* of further lines: what has less is no place to look at */
enum { MOST_PLACES = 3 };

struct kprof_place_finder {
    const kprof_code_profiles *profiles;
    const kprof_loaded_code *loaded; /* the code of the launch */
    double *values; /* [metric_count of the model]: of the last launch, with those of its instructions */
    double counters[KPROF_COUNTER_COUNT]; /* sums over these; NaN: not measured */
    kprof_pool *texts;                    /* of the places of the last launch */
    kprof_found_place *places;            /* [place_count] of it */
    size_t place_count;
    struct moved *moved; /* by instruction of the code, for the finding that is located */
};

/* Samples of others that count for an instruction, less those of its own that count for others. */
typedef struct moved {
    double weight;
    double most;       /* from one instruction */
    size_t sampled_at; /* that one */
} moved;

/* The columns of a finding's metrics. */
typedef struct place_metrics {
    struct {
        size_t count, less; /* SIZE_MAX: not measured; nothing goes off */
        const char *cause;  /* opcode of what causes samples of other instructions; NULL: none */
    } columns[KPROF_MOST_PLACE_METRICS];
    size_t column_count;
    bool are_of_scoreboard; /* only for a scoreboard waits whoever uses a value */
} place_metrics;

static size_t find_column(const kprof_profiled_code *code, const char *name)
{
    const kprof_model_metric *metrics = code->profiles->model->metrics;
    const size_t at = KPROF_FIND(i, code->metric_count, strcmp(metrics[code->metrics[i]].name, name) == 0);
    if (at < code->metric_count)
        return at;
    const kprof_code_counter counter = kprof_code_counter_find(name);
    return counter == KPROF_COUNTER_NONE ? SIZE_MAX : code->counters[counter];
}

static void add_columns(const kprof_profiled_code *code, const char *name, place_metrics *out)
{
    const kprof_instruction_metric *row = kprof_instruction_metric_find(name);
    const bool is_excess = row && row->needs[0];
    const size_t count = find_column(code, is_excess ? row->needs[0] : name);
    const size_t less = is_excess ? find_column(code, row->needs[1]) : SIZE_MAX;
    if (count == SIZE_MAX || (is_excess && less == SIZE_MAX))
        return;
    const size_t prefix = sizeof KPROF_STALL_PREFIX - 1;
    const bool is_stall = strncmp(name, KPROF_STALL_PREFIX, prefix) == 0;
    out->columns[out->column_count].count = count;
    out->columns[out->column_count].less = less;
    out->columns[out->column_count++].cause =
        is_stall ? kprof_stall_cause_opcode(name + prefix, strlen(name + prefix)) : NULL;
    out->are_of_scoreboard = out->are_of_scoreboard || strstr(name, "_scoreboard") != NULL;
}

/* Those of the option that is chosen, if the finding depends on that, as far as they were measured. */
static place_metrics choose_metrics(const kprof_profiled_code *code, const kprof_found *found)
{
    const kprof_finding_places *places = &found->finding->places;
    const size_t values[] = {places->of, places->beside};
    place_metrics metrics = {.column_count = 0};
    for (char **name = places->metrics; name && *name; name++)
        add_columns(code, *name, &metrics);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        const size_t option = values[i] == SIZE_MAX ? SIZE_MAX : found->options[values[i]];
        const char *chosen = option == SIZE_MAX ? NULL : found->finding->values[values[i]].options[option].place;
        if (chosen)
            add_columns(code, chosen, &metrics);
    }
    return metrics;
}

/* A count, or what it has more than another one. */
static double weigh_column(const double *values, const place_metrics *metrics, size_t column)
{
    const size_t less = metrics->columns[column].less;
    return values[metrics->columns[column].count] - (less == SIZE_MAX ? 0 : values[less]);
}

/* A sum of counts, and of what one count has more than another. */
static double weigh(const double *values, const place_metrics *metrics)
{
    return KPROF_SUM(i, metrics->column_count, fmax(weigh_column(values, metrics, i), 0));
}

static kprof_code_place place_of(const kprof_place_finder *finder, size_t instruction)
{
    const kprof_profiled_code *code = &finder->loaded->code;
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    const kprof_profiled_frame *frame = kprof_profiled_place(code, instruction);
    const kprof_profiled_frame *caller = kprof_profiled_caller(code, instruction);
    const kprof_profiled_frame *library = kprof_profiled_library(code, instruction);
    kprof_code_place place = {.name = NULL};
    if (frame) {
        place.path = frame->file->path;
        place.line = frame->line;
        place.name = kprof_pool_keep(finder->texts, kprof_strprintf("%s:%u", frame->file->name, frame->line));
        if (library)
            place.library =
                kprof_pool_keep(finder->texts, kprof_strprintf("%s:%u", library->file->name, library->line));
        if (caller)
            place.caller = kprof_pool_keep(finder->texts, kprof_strprintf("%s:%u", caller->file->name, caller->line));
    } else {
        const char *function = code->function_count > 1 ? code->functions[own->function].demangled : NULL;
        place.name = kprof_pool_keep(finder->texts, kprof_strprintf("instruction 0x%lx%s%s", own->offset,
                                                                    function ? " of " : "", function ? function : ""));
    }
    return place;
}

/* The instructions of a line that are called from one place, or an instruction alone. */
typedef struct candidate {
    const size_t *instructions; /* [count] */
    size_t count;
    double weight;
} candidate;

/* The instruction with the largest weight that waits for another one, and which it waits for. */
static void find_wait(const kprof_place_finder *finder, const candidate *from, const place_metrics *metrics,
                      kprof_found_place *out)
{
    const kprof_profiled_code *code = &finder->loaded->code;
    const size_t none = SIZE_MAX;
    size_t producer = none;
    double most = 0;
    for (size_t i = 0; i < from->count; i++) {
        const double weight = weigh(kprof_profiled_values(code, from->instructions[i]), metrics);
        const size_t found = weight > most ? kprof_profiled_producer(code, from->instructions[i]) : none;
        producer = found != none ? found : producer;
        most = found != none ? weight : most;
    }
    if (producer == none)
        return;
    out->waits = true;
    out->waits_for = place_of(finder, producer);
    out->space = code->instructions[producer].space;
    out->operation = code->instructions[producer].operation;
}

/* Give the samples of a column to the instructions that cause them. */
static void move_column(const kprof_profiled_code *code, size_t column, const char *cause, moved *out)
{
    for (size_t i = 0; i < code->instruction_count; i++) {
        const double weight = kprof_profiled_values(code, i)[column];
        const size_t to = weight > 0 ? kprof_stall_cause(code, cause, i) : i;
        if (to == i)
            continue;
        out[i].weight -= weight;
        out[to].weight += weight;
        if (weight > out[to].most) {
            out[to].most = weight;
            out[to].sampled_at = i;
        }
    }
}

/* How many of a line's instructions, which are in order of their callers, are called from where the first one is. */
static size_t count_called_alike(const kprof_profiled_code *code, const size_t *instructions, size_t count)
{
    const kprof_profiled_frame *first = kprof_profiled_caller(code, instructions[0]);
    size_t alike = 1;
    for (; alike < count; alike++) {
        const kprof_profiled_frame *caller = kprof_profiled_caller(code, instructions[alike]);
        if (!caller != !first || (caller && (caller->file != first->file || caller->line != first->line)))
            break;
    }
    return alike;
}

/* The other line, if any, at which the hardware counts most of the waits that a line causes. */
static void find_sampled(const kprof_place_finder *finder, const candidate *from, kprof_found_place *out)
{
    const moved *most = NULL;
    double from_others = 0;
    for (size_t i = 0; i < from->count && finder->moved; i++) {
        const moved *own = &finder->moved[from->instructions[i]];
        from_others += own->weight;
        if (own->most > (most ? most->most : 0))
            most = own;
    }
    if (!most || 2 * from_others < from->weight)
        return;
    out->sampled_at = place_of(finder, most->sampled_at);
    out->is_sampled_behind = out->sampled_at.line != out->at.line || out->sampled_at.path != out->at.path ||
                             (out->at.line == 0 && most->sampled_at != from->instructions[0]);
}

static size_t heaviest(const kprof_place_finder *finder, const candidate *from, const place_metrics *metrics)
{
    size_t found = from->instructions[0];
    double most = 0;
    for (size_t i = 0; i < from->count; i++) {
        const size_t number = from->instructions[i];
        const double weight = weigh(kprof_profiled_values(&finder->loaded->code, number), metrics) +
                              (finder->moved ? finder->moved[number].weight : 0);
        found = weight > most ? number : found;
        most = weight > most ? weight : most;
    }
    return found;
}

static void add_place(kprof_place_finder *finder, const candidate *from, const place_metrics *metrics, double share_pct)
{
    kprof_found_place *place = KPROF_POOL_ADD(finder->texts, finder->places, finder->place_count);
    *place = (kprof_found_place){.at = place_of(finder, heaviest(finder, from, metrics)), .share_pct = share_pct};
    if (metrics->are_of_scoreboard)
        find_wait(finder, from, metrics, place);
    find_sampled(finder, from, place);
}

/* The heaviest candidates of a finding, which are in order. */
typedef struct ranking {
    place_metrics metrics;
    size_t most; /* at most MOST_PLACES */
    candidate best[MOST_PLACES];
} ranking;

static void rank(candidate next, ranking *among)
{
    for (size_t i = 0; i < among->most; i++) {
        if (!(next.weight > among->best[i].weight))
            continue;
        const candidate lighter = among->best[i];
        among->best[i] = next;
        next = lighter;
    }
}

/* The next of a line's instructions, `members`, that are called from one place, or the next one alone where the code
 * has no lines. False behind the last ones, and for what has no line where others have. */
static bool next_candidate(const kprof_profiled_code *code, const kprof_profiled_line *line, const size_t *members,
                           candidate *out)
{
    const bool by_line = kprof_profiled_has_lines(code);
    const size_t before = out->instructions ? (size_t)(out->instructions - members) + out->count : 0;
    if (before >= line->count || (!line->file && by_line))
        return false;
    out->instructions = members + before;
    out->count = by_line ? count_called_alike(code, out->instructions, line->count - before) : 1;
    return true;
}

static void rank_line(const kprof_place_finder *finder, const kprof_profiled_line *line, ranking *among)
{
    candidate next = {NULL, 0, 0};
    while (next_candidate(&finder->loaded->code, line, finder->loaded->lines.by_caller + line->first, &next)) {
        next.weight = 0;
        for (size_t i = 0; i < among->metrics.column_count; i++) {
            double sum = 0;
            for (size_t k = 0; k < next.count; k++)
                sum += weigh_column(kprof_profiled_values(&finder->loaded->code, next.instructions[k]), &among->metrics,
                                    i);
            next.weight += fmax(sum, 0);
        }
        for (size_t i = 0; i < next.count && finder->moved; i++)
            next.weight += finder->moved[next.instructions[i]].weight;
        rank(next, among);
    }
}

static size_t locate(kprof_place_finder *finder, const kprof_found *found)
{
    const kprof_profiled_code *code = &finder->loaded->code;
    ranking among = {.metrics = choose_metrics(code, found), .most = (size_t)found->finding->places.most};
    const double total = weigh(code->totals, &among.metrics);
    size_t added = 0;
    finder->moved = NULL;
    for (size_t i = 0; i < among.metrics.column_count; i++) {
        if (!among.metrics.columns[i].cause)
            continue;
        if (!finder->moved)
            finder->moved = kprof_pool_calloc(finder->texts, code->instruction_count + 1, sizeof *finder->moved);
        move_column(code, among.metrics.columns[i].count, among.metrics.columns[i].cause, finder->moved);
    }
    for (size_t i = 0; i < finder->loaded->lines.count && total > 0; i++)
        rank_line(finder, &finder->loaded->lines.items[i], &among);
    for (; added < among.most && among.best[added].weight > 0; added++) {
        const double share_pct = 100 * among.best[added].weight / total;
        if (added > 0 && share_pct < LEAST_SHARE_PCT)
            break;
        add_place(finder, &among.best[added], &among.metrics, share_pct);
    }
    return added;
}

kprof_place_finder *kprof_place_finder_new(const kprof_code_profiles *profiles)
{
    kprof_pool *pool = profiles->model->pool;
    kprof_place_finder *finder = kprof_pool_calloc(pool, 1, sizeof *finder);
    finder->texts = kprof_pool_child(pool);
    finder->profiles = profiles;
    return finder;
}

/* Those sectors of a line's instructions, called from one place, that have more than they need. */
typedef struct wasted {
    double excess, sectors;
} wasted;

/* Addresses of atomics are what these count: no layout brings them together. */
static bool is_atomic(const kprof_profiled_code *code, const double *values)
{
    static const kprof_code_counter counters[] = {KPROF_COUNTER_ATOM, KPROF_COUNTER_RED};
    return KPROF_ANY(i, COUNT_OF(counters),
                     code->counters[counters[i]] != SIZE_MAX && values[code->counters[counters[i]]] > 0);
}

/* The sectors that whole warps would need: no layout brings the bytes of some threads nearer than their neighbours',
 * which are not read. */
static double ideal_of(const kprof_profiled_code *code, const double *values)
{
    enum { WARP = 32 };
    const size_t counted = code->counters[KPROF_COUNTER_INSTRUCTIONS], on = code->counters[KPROF_COUNTER_THREADS_ON];
    const double ideal = values[code->counters[KPROF_COUNTER_SECTORS_IDEAL]];
    const double threads = on == SIZE_MAX ? 0 : values[on], all = counted == SIZE_MAX ? 0 : WARP * values[counted];
    return threads > 0 && all > threads ? ideal * all / threads : ideal;
}

static wasted waste_of(const kprof_profiled_code *code, const candidate *line)
{
    wasted sum = {0, 0};
    for (size_t i = 0; i < line->count; i++) {
        const double *values = kprof_profiled_values(code, line->instructions[i]);
        const double all = values[code->counters[KPROF_COUNTER_SECTORS]], ideal = ideal_of(code, values);
        if (!(all > ideal) || is_atomic(code, values))
            continue;
        sum.excess += all - ideal;
        sum.sectors += all;
    }
    return sum;
}

/* Good accesses may hide a bad line in the sums of a kernel. */
static void find_worst(kprof_place_finder *finder)
{
    const kprof_loaded_code *loaded = finder->loaded;
    wasted worst = {0, 0};
    if (isnan(finder->counters[KPROF_COUNTER_SECTORS]) || isnan(finder->counters[KPROF_COUNTER_SECTORS_IDEAL]))
        return;
    for (size_t i = 0; i < loaded->lines.count; i++) {
        const kprof_profiled_line *line = &loaded->lines.items[i];
        candidate next = {NULL, 0, 0};
        while (next_candidate(&loaded->code, line, loaded->lines.by_caller + line->first, &next)) {
            const wasted own = waste_of(&loaded->code, &next);
            worst = own.excess > worst.excess ? own : worst;
        }
    }
    finder->counters[KPROF_COUNTER_WORST_EXCESS] = worst.excess;
    finder->counters[KPROF_COUNTER_WORST_SECTORS] = worst.sectors;
}

kprof_place_values kprof_places_values(kprof_place_finder *finder, const kprof_code_profile *profile,
                                       const double *values)
{
    const size_t count = finder->profiles->model->metric_count;
    finder->loaded = profile ? kprof_code_load(finder->profiles, profile) : NULL;
    if (!finder->loaded)
        return (kprof_place_values){values, NULL};
    if (!finder->values)
        finder->values = kprof_pool_calloc(finder->profiles->model->pool, count + 1, sizeof *finder->values);
    memcpy(finder->values, values, count * sizeof *values);
    const kprof_profiled_code *code = &finder->loaded->code;
    for (size_t i = 0; i < code->metric_count; i++)
        finder->values[code->metrics[i]] = code->totals[i];
    for (size_t i = 0; i < KPROF_COUNTER_COUNT; i++)
        finder->counters[i] = code->counters[i] == SIZE_MAX ? NAN : code->totals[code->counters[i]];
    finder->counters[KPROF_COUNTER_SAMPLES] = kprof_profiled_number(code, code->totals, KPROF_NUMBER_SAMPLES);
    finder->counters[KPROF_COUNTER_SAMPLES_UNISSUED] = kprof_profiled_number(code, code->totals, KPROF_NUMBER_UNISSUED);
    find_worst(finder);
    return (kprof_place_values){finder->values, finder->counters};
}

void kprof_places_find(kprof_place_finder *finder, int64_t launch, kprof_rules *rules)
{
    const kprof_code_profile *profile = kprof_code_profile_of(finder->profiles, launch);
    const kprof_findings *findings = kprof_rules_findings(rules);
    kprof_pool_free(finder->texts);
    finder->place_count = 0;
    finder->loaded = profile ? kprof_code_load(finder->profiles, profile) : NULL;
    if (!finder->loaded)
        return;
    KPROF_AUTO_FREE size_t *counts = kprof_calloc(findings->count + 1, sizeof *counts);
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].state == KPROF_FOUND)
            counts[i] = locate(finder, &findings->items[i]);
    /* Once all are there, so that their memory stays where it is. */
    for (size_t i = 0, first = 0; i < findings->count; first += counts[i++])
        kprof_rules_place(rules, i, counts[i] > 0 ? finder->places + first : NULL, counts[i]);
}

static void put_place(const kprof_code_place *place, kprof_strbuf *out)
{
    kprof_strbuf_puts(out, place->name);
    if (place->library)
        kprof_strbuf_printf(out, ", in %s", place->library);
    if (place->caller)
        kprof_strbuf_printf(out, ", called from %s", place->caller);
}

void kprof_found_where(const kprof_found *found, kprof_strbuf *out)
{
    for (size_t i = 0; i < found->place_count; i++) {
        const kprof_found_place *place = &found->places[i];
        kprof_strbuf_puts(out, i ? ", " : "Most of it: ");
        put_place(&place->at, out);
        kprof_strbuf_printf(out, " (%.3g %%)", place->share_pct);
        if (place->is_sampled_behind) {
            kprof_strbuf_puts(out, ", sampled behind it at ");
            put_place(&place->sampled_at, out);
        }
        if (!place->waits)
            continue;
        const bool is_same =
            place->at.line > 0 && place->at.line == place->waits_for.line && place->at.path == place->waits_for.path;
        kprof_strbuf_puts(out, is_same ? " waits for another instruction of the line" : " waits for ");
        if (!is_same)
            put_place(&place->waits_for, out);
        if (place->operation)
            kprof_strbuf_printf(out, " (%s%s%s)", place->space ? place->space : "", place->space ? " " : "",
                                place->operation);
    }
    kprof_strbuf_puts(out, found->place_count ? "." : "");
}
