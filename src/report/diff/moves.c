/* Adds up the samples of the lines of a kernel over the profiles of its launches, and compares their shares. */
#include "report/diff/moves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A share of the samples that changed by less is the same. */
#define POINTS_MIN 3.0
/* It is told if it is above so many standard errors of the difference too, as samples are counts. */
#define ERRORS_MIN 3.0

/* A place with the samples that each report has there. */
typedef struct counted_place {
    char place[96];
    double samples[KPROF_SIDES];
    char stalls[KPROF_SIDES][48];
} counted_place;

/* The places of a kernel. */
typedef struct counted_places {
    counted_place *items; /* [count]; the first `merged` differ and are sorted */
    size_t count, merged;
    double samples[KPROF_SIDES];
    bool has_lines[KPROF_SIDES];
} counted_places;

kprof_status kprof_moves_load(const kprof_page_context *context, kprof_moves *out)
{
    kprof_status status = KPROF_OK;
    *out = (kprof_moves){0};
    for (int side = 0; side < KPROF_SIDES && status == KPROF_OK; side++) {
        const kprof_page_report *report = &context->reports[side];
        status = kprof_code_profiles_load(report->file, &report->model, &out->profiles[side]);
        out->taken[side] = kprof_calloc(out->profiles[side].count + 1, sizeof *out->taken[side]);
        if (status == KPROF_OK && !out->taken[side])
            status = kprof_store_no_memory(report->file);
    }
    return status;
}

void kprof_moves_free(kprof_moves *moves)
{
    for (int side = 0; side < KPROF_SIDES; side++) {
        kprof_code_profiles_free(&moves->profiles[side]);
        free(moves->taken[side]);
    }
}

bool kprof_moves_are_there(const kprof_moves *moves)
{
    return moves->profiles[KPROF_BASELINE].count > 0 && moves->profiles[KPROF_NEW].count > 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const counted_place *)a)->place, ((const counted_place *)b)->place);
}

/* Make one of the items of each place. What warps wait for is what they wait for in the first one. */
static void merge(counted_places *places)
{
    size_t count = 0;
    if (places->count > 0)
        qsort(places->items, places->count, sizeof *places->items, by_name);
    for (size_t i = 0; i < places->count; i++) {
        const counted_place *item = &places->items[i];
        counted_place *last = count > 0 ? &places->items[count - 1] : NULL;
        if (!last || strcmp(last->place, item->place) != 0) {
            memmove(&places->items[count++], item, sizeof *item);
            continue;
        }
        for (int side = 0; side < KPROF_SIDES; side++) {
            last->samples[side] += item->samples[side];
            if (!*last->stalls[side])
                memcpy(last->stalls[side], item->stalls[side], sizeof last->stalls[side]);
        }
    }
    places->count = places->merged = count;
}

/* Add a row of values; false when out of memory. */
static bool add_place(counted_places *places, int side, const kprof_profiled_code *code, const double *values)
{
    const double samples = kprof_profiled_number(code, values, KPROF_NUMBER_SAMPLES);
    double pct;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, values, 0, &pct);
    if (!(samples > 0))
        return true;
    if (places->count > 2 * places->merged + 64)
        merge(places);
    counted_place *place = KPROF_ADD(places->items, places->count);
    if (!place)
        return false;
    *place = (counted_place){.place = ""};
    place->samples[side] = samples;
    if (reason)
        kprof_profiled_reason_name(reason, place->stalls[side], sizeof place->stalls[side]);
    return true;
}

/* Functions of one launch follow one another. */
static void name_place(const kprof_profiled_code *code, const kprof_profiled_line *line, size_t instruction,
                       char place[96])
{
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    if (line)
        kprof_code_put_place(place, 96, line->file, line->line);
    else
        snprintf(place, 96, "0x%04llx", (unsigned long long)(code->functions[own->function].base + own->offset));
}

/* Add the lines of a profile or, where it has none, its instructions. */
static kprof_status add_profile(const kprof_code_profiles *profiles, const kprof_code_profile *profile, int side,
                                counted_places *places)
{
    const kprof_loaded_code *loaded;
    const kprof_status status = kprof_code_load(profiles, profile, &loaded);
    if (status != KPROF_OK)
        return status;
    const kprof_profiled_code *code = &loaded->code;
    const bool has_lines = kprof_profiled_has_lines(code);
    const double all = kprof_profiled_number(code, code->totals, KPROF_NUMBER_SAMPLES);
    const size_t count = !(all > 0) ? 0 : has_lines ? loaded->lines.count : code->instruction_count;
    places->samples[side] += all > 0 ? all : 0;
    places->has_lines[side] = places->has_lines[side] || (all > 0 && has_lines);
    for (size_t i = 0; i < count; i++) {
        const kprof_profiled_line *line = has_lines ? &loaded->lines.items[i] : NULL;
        const size_t before = places->count;
        if (line && !line->file)
            continue;
        if (!add_place(places, side, code, line ? line->values : kprof_profiled_values(code, i)))
            return kprof_store_no_memory(profiles->report);
        if (places->count == before)
            continue;
        name_place(code, line, line ? 0 : i, places->items[places->count - 1].place);
    }
    return KPROF_OK;
}

/* Is a difference of shares larger than a few points, and than chance makes it? */
static bool is_moved(const counted_places *places, const double pct[KPROF_SIDES])
{
    double variance = 0;
    for (int side = 0; side < KPROF_SIDES; side++)
        variance += pct[side] * (100 - pct[side]) / places->samples[side];
    const double difference = fabs(pct[KPROF_NEW] - pct[KPROF_BASELINE]);
    return difference > POINTS_MIN && difference > ERRORS_MIN * sqrt(variance);
}

static kprof_moved_line moved_line(const counted_places *places, const counted_place *place)
{
    kprof_moved_line line = {.is_line = places->has_lines[KPROF_NEW]};
    memcpy(line.place, place->place, sizeof line.place);
    for (int side = 0; side < KPROF_SIDES; side++)
        line.pct[side] = 100 * place->samples[side] / places->samples[side];
    const int larger = line.pct[KPROF_NEW] > line.pct[KPROF_BASELINE] ? KPROF_NEW : KPROF_BASELINE;
    memcpy(line.stall, place->stalls[larger], sizeof line.stall);
    line.has_moved = is_moved(places, line.pct);
    return line;
}

static double change_of(const kprof_moved_line *line)
{
    return line->pct[KPROF_NEW] - line->pct[KPROF_BASELINE];
}

/* Keep the lines that moved most, `most` of them at the most. */
static void insert(const kprof_moved_line *line, size_t most, kprof_moved_lines *out)
{
    size_t at = out->count;
    while (at > 0 && fabs(change_of(&out->items[at - 1])) < fabs(change_of(line)))
        at--;
    if (at == most)
        return;
    out->count += out->count < most;
    memmove(&out->items[at + 1], &out->items[at], (out->count - 1 - at) * sizeof *out->items);
    out->items[at] = *line;
}

/* Add a line that is not there yet. */
static void add_hottest(const kprof_moved_line *line, kprof_moved_lines *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].place, line->place) == 0)
            return;
    insert(line, sizeof out->items / sizeof *out->items, out);
}

static void choose(const counted_places *places, kprof_moved_lines *out)
{
    kprof_moved_line hottest[KPROF_SIDES] = {{.place = ""}, {.place = ""}};
    for (size_t i = 0; i < places->count; i++) {
        const kprof_moved_line line = moved_line(places, &places->items[i]);
        for (int side = 0; side < KPROF_SIDES; side++)
            if (line.pct[side] > hottest[side].pct[side])
                hottest[side] = line;
        if (line.has_moved)
            insert(&line, KPROF_MOVED_MAX, out);
    }
    for (int side = 0; side < KPROF_SIDES; side++)
        if (hottest[side].pct[side] > 0)
            add_hottest(&hottest[side], out);
}

kprof_status kprof_moves_find(kprof_moves *moves, const kprof_diff_kernel *kernel, kprof_moved_lines *out)
{
    counted_places places = {.items = NULL};
    kprof_status status = KPROF_OK;
    *out = (kprof_moved_lines){.count = 0};
    moves->kernels++;
    if (!kernel->groups[KPROF_BASELINE] || !kernel->groups[KPROF_NEW] || !kprof_moves_are_there(moves))
        return KPROF_OK;
    for (int side = 0; side < KPROF_SIDES && status == KPROF_OK; side++) {
        const kprof_launch_group *group = kernel->groups[side];
        const kprof_code_profiles *profiles = &moves->profiles[side];
        for (size_t i = 0; i < group->id_count && status == KPROF_OK; i++) {
            const kprof_code_profile *profile = kprof_code_profile_of(profiles, group->ids[i]);
            if (!profile || moves->taken[side][profile - profiles->items] == moves->kernels)
                continue;
            moves->taken[side][profile - profiles->items] = moves->kernels;
            status = add_profile(profiles, profile, side, &places);
        }
    }
    const bool is_alike = places.has_lines[KPROF_BASELINE] == places.has_lines[KPROF_NEW];
    if (status == KPROF_OK && is_alike && places.samples[KPROF_BASELINE] > 0 && places.samples[KPROF_NEW] > 0) {
        merge(&places);
        choose(&places, out);
    }
    free(places.items);
    return status;
}

void kprof_moves_describe(const kprof_moved_lines *lines, kprof_strbuf *out)
{
    const kprof_moved_line *from = NULL, *to = NULL;
    for (size_t i = 0; i < lines->count; i++) {
        const kprof_moved_line *line = &lines->items[i];
        if (!line->has_moved)
            continue;
        if (change_of(line) < 0 && !from)
            from = line;
        if (change_of(line) > 0 && !to)
            to = line;
    }
    const char *what = from && from->is_line ? "line" : "instruction";
    if (from && to)
        kprof_strbuf_printf(out, "the samples moved from %s %s to %s %s", what, from->place, what, to->place);
}
