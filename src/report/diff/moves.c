/* Adds up the samples of the lines of a kernel over the profiles of its launches, and compares their shares. */
#include "report/diff/moves.h"

#include "core/clean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A share of the samples that changed by less is the same. */
#define POINTS_MIN 3.0
/* A difference is reported only if it is also above this many standard errors, as samples are counts. */
#define ERRORS_MIN 3.0

static const char of_baseline[] = " of the baseline";

/* A place with the samples that each report has there. */
typedef struct counted_place {
    char place[128];
    double samples[KPROF_SIDES];
    char stalls[KPROF_SIDES][48];
} counted_place;

/* The places of a kernel. */
typedef struct counted_places {
    counted_place *items; /* [count]; the first `merged` differ and are sorted */
    size_t count, merged;
    double samples[KPROF_SIDES];
    bool has_lines[KPROF_SIDES];
    const kprof_loaded_code *twin;     /* the new code, while that of the baseline is added; NULL: it is another one */
    const kprof_code_file *not_mapped; /* was edited; NULL: none */
    bool is_recompiled;
} counted_places;

void kprof_moves_load(const kprof_page_context *context, kprof_moves *out)
{
    *out = (kprof_moves){.context = context};
    for (int side = 0; side < KPROF_SIDES; side++) {
        const kprof_page_report *report = &context->reports[side];
        out->profiles[side] = kprof_code_profiles_load(report->file, &report->model);
        out->taken[side] =
            kprof_pool_calloc(report->model.pool, out->profiles[side]->count + 1, sizeof *out->taken[side]);
    }
    out->files = kprof_pool_calloc(context->reports->model.pool, out->profiles[KPROF_BASELINE]->file_count + 1,
                                   sizeof *out->files);
}

void kprof_moves_free(kprof_moves *moves)
{
    kprof_source_index_free(&moves->index);
}

bool kprof_moves_are_there(const kprof_moves *moves)
{
    return moves->profiles[KPROF_BASELINE]->count > 0 && moves->profiles[KPROF_NEW]->count > 0;
}

KPROF_BY_TEXT(by_name, counted_place, place)

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

/* Add a row of values. NULL: it has no samples. */
static counted_place *add_place(counted_places *places, int side, const kprof_profiled_code *code, const double *values)
{
    const double samples = kprof_profiled_number(code, values, KPROF_NUMBER_SAMPLES);
    double pct;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, values, 0, &pct);
    if (!(samples > 0))
        return NULL;
    if (places->count > 2 * places->merged + 64)
        merge(places);
    counted_place *place = KPROF_ADD(places->items, places->count);
    *place = (counted_place){.place = ""};
    place->samples[side] = samples;
    if (reason)
        kprof_profiled_reason_name(reason, place->stalls[side], sizeof place->stalls[side]);
    return place;
}

/* The file of the new report that is of this path or, where there is none, of this name: of several that in folders of
 * the same names. */
static const kprof_code_file *find_now(const kprof_moves *moves, const kprof_code_file *file)
{
    const kprof_code_profiles *now = moves->profiles[KPROF_NEW];
    const kprof_code_file *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < now->file_count; i++) {
        if (strcmp(now->files[i].path, file->path) == 0)
            return &now->files[i];
        const size_t same_end = kprof_source_same_end(now->files[i].path, file->path);
        found = same_end > most ? &now->files[i] : found;
        most = same_end > most ? same_end : most;
    }
    return found;
}

/* Compare both versions of a file, where it was edited and both texts are to be had. */
static void compare_texts(kprof_moves *moves, const kprof_code_file *file, kprof_file_versions *out)
{
    const kprof_print_options *options = moves->context->options;
    const kprof_source_places places = {options->source_folders, options->source_files, &moves->index};
    kprof_source_text old = {0}, new = {0};
    kprof_source_text_find(moves->profiles[KPROF_BASELINE], file, &places, &old);
    kprof_source_text_find(moves->profiles[KPROF_NEW], out->now, &places, &new);
    if (old.text && new.text) {
        out->state = KPROF_FILE_EDITED;
        kprof_line_map_make(moves->context->reports->model.pool, &old, &new, &out->lines);
    }
    kprof_source_text_free(&old);
    kprof_source_text_free(&new);
}

static const kprof_file_versions *compare_file(kprof_moves *moves, const kprof_code_file *file)
{
    kprof_file_versions *versions = &moves->files[file - moves->profiles[KPROF_BASELINE]->files];
    if (versions->state != KPROF_FILE_NOT_COMPARED)
        return versions;
    const kprof_code_file *now = versions->now = find_now(moves, file);
    const bool has_other_size = now && file->bytes >= 0 && now->bytes >= 0 && file->bytes != now->bytes;
    const bool has_other_hash = now && file->hash && now->hash && strcmp(file->hash, now->hash) != 0;
    versions->state = has_other_size || has_other_hash ? KPROF_FILE_UNKNOWN : KPROF_FILE_SAME;
    if (versions->state == KPROF_FILE_UNKNOWN)
        compare_texts(moves, file, versions);
    return versions;
}

static bool is_same_opcode(const char *a, const char *b)
{
    const size_t length = a ? strcspn(a, " ") : 0;
    return !a || !b || (length == strcspn(b, " ") && strncmp(a, b, length) == 0);
}

/* Is the code the same but for lines and operands, as where a file was edited elsewhere? */
static bool are_twins(const kprof_profiled_code *a, const kprof_profiled_code *b)
{
    return a->instruction_count == b->instruction_count &&
           KPROF_ALL(i, a->instruction_count,
                     a->instructions[i].function == b->instructions[i].function &&
                         a->instructions[i].offset == b->instructions[i].offset &&
                         is_same_opcode(a->instructions[i].text, b->instructions[i].text));
}

/* Name a line of the baseline as the new report does: the code tells where it is the same, else the texts. */
static void name_old_line(kprof_moves *moves, const kprof_loaded_code *loaded, const kprof_profiled_line *line,
                          counted_places *places)
{
    char *place = places->items[places->count - 1].place;
    const size_t size = sizeof places->items->place;
    const kprof_profiled_code *twin = places->twin ? &places->twin->code : NULL;
    const kprof_profiled_frame *frame = twin ? kprof_profiled_place(twin, loaded->lines.members[line->first]) : NULL;
    const kprof_file_versions *versions = compare_file(moves, line->file);
    const uint32_t now = versions->state == KPROF_FILE_EDITED && line->line > 0 && line->line <= versions->lines.count
                             ? versions->lines.to[line->line - 1]
                             : 0;
    if (versions->state != KPROF_FILE_SAME && frame)
        kprof_code_put_place(place, size, frame->file, frame->line);
    else if (now > 0)
        kprof_code_put_place(place, size, versions->now, now);
    else
        kprof_code_put_place(place, size - sizeof of_baseline, line->file, line->line);
    if (versions->state == KPROF_FILE_UNKNOWN && !frame)
        places->not_mapped = line->file;
    if (versions->state == KPROF_FILE_EDITED && !frame && now == 0)
        strcat(place, of_baseline);
}

/* Add the lines of a profile or, where it has none, its instructions. */
static void add_profile(kprof_moves *moves, const kprof_code_profile *profile, int side, counted_places *places)
{
    const kprof_loaded_code *loaded = kprof_code_load(moves->profiles[side], profile);
    if (!loaded)
        return;
    const kprof_profiled_code *code = &loaded->code;
    const bool has_lines = kprof_profiled_has_lines(code);
    const double all = kprof_profiled_number(code, code->totals, KPROF_NUMBER_SAMPLES);
    const size_t count = !(all > 0) ? 0 : has_lines ? loaded->lines.count : code->instruction_count;
    places->samples[side] += all > 0 ? all : 0;
    places->has_lines[side] = places->has_lines[side] || (all > 0 && has_lines);
    if (places->twin && !are_twins(code, &places->twin->code))
        places->twin = NULL;
    places->is_recompiled = places->is_recompiled || (side == KPROF_BASELINE && !has_lines && !places->twin);
    for (size_t i = 0; i < count; i++) {
        const kprof_profiled_line *line = has_lines ? &loaded->lines.items[i] : NULL;
        if (line && !line->file)
            continue;
        counted_place *added = add_place(places, side, code, line ? line->values : kprof_profiled_values(code, i));
        if (!added)
            continue;
        if (line && side == KPROF_BASELINE)
            name_old_line(moves, loaded, line, places);
        else if (line)
            kprof_code_put_place(added->place, sizeof added->place, line->file, line->line);
        else {
            const kprof_profiled_instruction *own = &code->instructions[i];
            snprintf(added->place, sizeof added->place, "0x%04lx", code->functions[own->function].base + own->offset);
        }
    }
}

static kprof_moved_line moved_line(const counted_places *places, const counted_place *place)
{
    kprof_moved_line line = {.is_line = places->has_lines[KPROF_NEW]};
    memcpy(line.place, place->place, sizeof line.place);
    for (int side = 0; side < KPROF_SIDES; side++)
        line.pct[side] = 100 * place->samples[side] / places->samples[side];
    const int larger = line.pct[KPROF_NEW] > line.pct[KPROF_BASELINE] ? KPROF_NEW : KPROF_BASELINE;
    memcpy(line.stall, place->stalls[larger], sizeof line.stall);
    /* Is a difference of shares larger than a few points, and than chance makes it? */
    double variance = 0;
    for (int side = 0; side < KPROF_SIDES; side++)
        variance += line.pct[side] * (100 - line.pct[side]) / places->samples[side];
    const double difference = fabs(line.pct[KPROF_NEW] - line.pct[KPROF_BASELINE]);
    line.has_moved = difference > POINTS_MIN && difference > ERRORS_MIN * sqrt(variance);
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
    if (!KPROF_ANY(i, out->count, strcmp(out->items[i].place, line->place) == 0))
        insert(line, COUNT_OF(out->items), out);
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

/* The first profile of a group's launches; NULL: they have none. */
static const kprof_code_profile *first_profile(const kprof_code_profiles *profiles, const kprof_launch_group *group)
{
    const kprof_code_profile *found = NULL;
    for (size_t i = 0; i < group->id_count && !found; i++)
        found = kprof_code_profile_of(profiles, group->ids[i]);
    return found;
}

static void add_side(kprof_moves *moves, const kprof_launch_group *group, int side, counted_places *places)
{
    const kprof_code_profiles *profiles = moves->profiles[side];
    for (size_t i = 0; i < group->id_count; i++) {
        const kprof_code_profile *profile = kprof_code_profile_of(profiles, group->ids[i]);
        if (!profile || moves->taken[side][profile - profiles->items] == moves->kernels)
            continue;
        moves->taken[side][profile - profiles->items] = moves->kernels;
        add_profile(moves, profile, side, places);
    }
}

void kprof_moves_find(kprof_moves *moves, const kprof_diff_kernel *kernel, kprof_moved_lines *out)
{
    counted_places places = {.items = NULL};
    *out = (kprof_moved_lines){.count = 0};
    moves->kernels++;
    if (!kernel->groups[KPROF_BASELINE] || !kernel->groups[KPROF_NEW] || !kprof_moves_are_there(moves))
        return;
    const kprof_code_profile *now = first_profile(moves->profiles[KPROF_NEW], kernel->groups[KPROF_NEW]);
    if (now)
        places.twin = kprof_code_load(moves->profiles[KPROF_NEW], now);
    add_side(moves, kernel->groups[KPROF_BASELINE], KPROF_BASELINE, &places);
    places.twin = NULL; /* reading more code of its report may drop it */
    add_side(moves, kernel->groups[KPROF_NEW], KPROF_NEW, &places);
    const bool is_alike = places.has_lines[KPROF_BASELINE] == places.has_lines[KPROF_NEW];
    if (is_alike && places.samples[KPROF_BASELINE] > 0 && places.samples[KPROF_NEW] > 0) {
        merge(&places);
        choose(&places, out);
        out->is_recompiled = places.is_recompiled;
        if (places.not_mapped)
            kprof_fit_text(out->edited, sizeof out->edited, places.not_mapped->name);
    }
    free(places.items);
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
    if (from && to && *lines->edited)
        kprof_strbuf_printf(out,
                            "%s was edited between the runs, so a number may stand for another line in each; "
                            "--import-source yes keeps the texts that tell",
                            lines->edited);
    else if (from && to && lines->is_recompiled && !from->is_line)
        kprof_strbuf_puts(out, "the code is another one, so an address stands for another instruction in each");
    else if (from && to)
        kprof_strbuf_printf(out, "the samples moved from %s %s to %s %s", what, from->place, what, to->place);
}
