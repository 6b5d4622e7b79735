/* Makes numbers of a profile's counters, ranks the stalls of its instructions, and adds up by line. */
#include "core/clean.h"
#include "report/model/code.h"
#include "report/model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REASON(name, label, column, ...) {name, label, column},
static const kprof_stall_reason reasons[] = {KPROF_STALL_REASONS(REASON)};

const kprof_stall_reason *kprof_stall_reason_find(const char *name, size_t length)
{
    return KPROF_FIRST(it, reasons, COUNT_OF(reasons),
                       strlen(it->name) == length && memcmp(it->name, name, length) == 0);
}

#define NUMBER_ROW(id, key, label, way, a, b, memory) [KPROF_NUMBER_##id] = {#key, label, KPROF_OF_##memory},
const kprof_code_number_row kprof_code_numbers[] = {KPROF_CODE_NUMBERS(NUMBER_ROW)};

typedef enum number_way { WAY_STALLS, WAY_UNISSUED, WAY_COUNT, WAY_SUM, WAY_RATIO, WAY_REST, WAY_EXCESS } number_way;

#define NUMBER_RULE(id, key, label, way, a, b, memory)                                                                 \
    [KPROF_NUMBER_##id] = {WAY_##way, {KPROF_COUNTER_##a, KPROF_COUNTER_##b}},
static const struct {
    number_way way;
    kprof_code_counter counters[2];
} rules[] = {KPROF_CODE_NUMBERS(NUMBER_RULE)};

/* NaN: it was not measured. */
static double counter(const kprof_profiled_code *code, const double *values, kprof_code_counter which)
{
    const size_t column = which == KPROF_COUNTER_NONE ? SIZE_MAX : code->counters[which];
    return column == SIZE_MAX ? NAN : values[column];
}

static double sum_of_samples(const kprof_profiled_code *code, const double *values, bool unissued)
{
    double sum = NAN;
    for (size_t i = 0; i < code->reason_count; i++) {
        const size_t column = unissued ? code->reasons[i].unissued : code->reasons[i].all;
        if (column != SIZE_MAX)
            sum = (isnan(sum) ? 0 : sum) + values[column];
    }
    return sum;
}

double kprof_profiled_number(const kprof_profiled_code *code, const double *values, kprof_code_number number)
{
    const number_way way = rules[number].way;
    if (way == WAY_STALLS || way == WAY_UNISSUED)
        return sum_of_samples(code, values, way == WAY_UNISSUED);
    const double a = counter(code, values, rules[number].counters[0]),
                 b = counter(code, values, rules[number].counters[1]);
    enum { WARP_THREADS = 32 };
    switch (way) {
    case WAY_SUM:
        return a + b;
    case WAY_RATIO: /* an instruction that nobody executed has no threads */
        return b == 0 ? 0 : a / b;
    case WAY_REST:
        return b == 0 ? 0 : WARP_THREADS - a / b;
    case WAY_EXCESS:
        return isnan(a) || isnan(b) ? NAN : fmax(a - b, 0);
    default:
        return a;
    }
}

static bool is_stall(const kprof_profiled_reason *reason)
{
    return reason->all != SIZE_MAX && (!reason->known || strcmp(reason->known->name, "selected") != 0);
}

const kprof_profiled_reason *kprof_profiled_stall(const kprof_profiled_code *code, const double *values, size_t rank,
                                                  double *pct)
{
    const double all = sum_of_samples(code, values, false);
    *pct = NAN;
    for (size_t i = 0; i < code->reason_count; i++) {
        const kprof_profiled_reason *reason = &code->reasons[i];
        size_t before = 0;
        if (!is_stall(reason) || !(values[reason->all] > 0))
            continue;
        for (size_t k = 0; k < code->reason_count; k++) {
            const kprof_profiled_reason *other = &code->reasons[k];
            const double more = is_stall(other) ? values[other->all] - values[reason->all] : -1;
            before += more > 0 || (more == 0 && k < i);
        }
        if (before != rank)
            continue;
        *pct = 100 * values[reason->all] / all;
        return reason;
    }
    return NULL;
}

void kprof_profiled_reason_name(const kprof_profiled_reason *reason, char *out, size_t size)
{
    if (reason->known)
        snprintf(out, size, "%s", reason->known->label);
    else
        snprintf(out, size, "%.*s", (int)reason->length, reason->name);
}

bool kprof_profiled_has_lines(const kprof_profiled_code *code)
{
    return code->frame_count > 0;
}

bool kprof_profiled_has_text(const kprof_profiled_code *code)
{
    return KPROF_ANY(i, code->instruction_count, code->instructions[i].text);
}

/* An instruction with the place by which it is sorted. */
typedef struct placed {
    const kprof_profiled_frame *frame; /* NULL: not known */
    size_t instruction;
} placed;

/* Line 0 is the compiler's own code. */
static const kprof_profiled_frame *place_of(const kprof_profiled_code *code, size_t instruction, kprof_line_frame of)
{
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    if (own->frame_count == 0)
        return NULL;
    const size_t at[] = {own->own_frame, own->first_frame, own->first_frame + own->frame_count - 1};
    const kprof_profiled_frame *frame = &code->frames[at[of]];
    return frame->line > 0 ? frame : NULL;
}

const kprof_profiled_frame *kprof_profiled_place(const kprof_profiled_code *code, size_t instruction)
{
    return place_of(code, instruction, KPROF_FRAME_OWN);
}

const kprof_profiled_frame *kprof_profiled_library(const kprof_profiled_code *code, size_t instruction)
{
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    if (own->frame_count == 0 || own->own_frame == own->first_frame || code->frames[own->first_frame].line == 0)
        return NULL;
    return &code->frames[own->first_frame];
}

static int compare_places(const placed *left, const placed *right)
{
    if (!left->frame || !right->frame)
        return !left->frame - !right->frame;
    if (left->frame->file != right->frame->file) {
        const int order = strcmp(left->frame->file->path, right->frame->file->path);
        return order ? order : left->frame->file < right->frame->file ? -1 : 1;
    }
    return KPROF_COMPARE(left->frame->line, right->frame->line);
}

KPROF_BY_BOTH(by_place, placed, compare_places(a, b), KPROF_COMPARE(a->instruction, b->instruction))

static int by_caller(const void *a, const void *b, void *code)
{
    const size_t left = *(const size_t *)a, right = *(const size_t *)b;
    const placed callers[] = {{kprof_profiled_caller(code, left), left}, {kprof_profiled_caller(code, right), right}};
    return by_place(&callers[0], &callers[1]);
}

static void fill_lines(const kprof_profiled_code *code, const placed *sorted, kprof_profiled_lines *out)
{
    for (size_t i = 0; i < code->instruction_count; i++) {
        const kprof_profiled_frame *frame = sorted[i].frame;
        const size_t own = code->instructions[sorted[i].instruction].function; /* tables of PTX name no function */
        if (i == 0 || compare_places(&sorted[i - 1], &sorted[i]) != 0) {
            out->items[out->count] =
                (kprof_profiled_line){.file = frame ? frame->file : NULL,
                                      .line = frame ? frame->line : 0,
                                      .function = !frame            ? NULL
                                                  : frame->function ? frame->function
                                                                    : code->functions[own].demangled,
                                      .first = i,
                                      .values = out->values + out->count * code->column_count};
            out->count++;
        }
        kprof_profiled_line *line = &out->items[out->count - 1];
        const double *values = kprof_profiled_values(code, sorted[i].instruction);
        line->count++;
        out->members[i] = sorted[i].instruction;
        for (size_t k = 0; k < code->column_count; k++)
            line->values[k] += values[k];
    }
}

void kprof_profiled_lines_make(const kprof_profiled_code *code, kprof_line_frame of, kprof_profiled_lines *out)
{
    const size_t count = code->instruction_count;
    *out = (kprof_profiled_lines){0};
    KPROF_AUTO_FREE placed *sorted = kprof_calloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = (placed){place_of(code, i, of), i};
    qsort(sorted, count, sizeof *sorted, by_place);
    const size_t lines = KPROF_SUM(i, count, i == 0 || compare_places(&sorted[i - 1], &sorted[i]) != 0);
    out->items = kprof_pool_calloc(code->pool, lines + 1, sizeof *out->items);
    out->members = kprof_pool_calloc(code->pool, count + 1, sizeof *out->members);
    out->by_caller = kprof_pool_calloc(code->pool, count + 1, sizeof *out->by_caller);
    out->values = kprof_pool_calloc(code->pool, lines * code->column_count + 1, sizeof *out->values);
    fill_lines(code, sorted, out);
    memcpy(out->by_caller, out->members, code->instruction_count * sizeof *out->members);
    for (size_t i = 0; i < out->count; i++) {
        const kprof_profiled_line *line = &out->items[i];
        qsort_r(out->by_caller + line->first, line->count, sizeof *out->by_caller, by_caller, (void *)code);
    }
}

const kprof_profiled_frame *kprof_profiled_caller(const kprof_profiled_code *code, size_t instruction)
{
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    if (own->frame_count == 0) /* there may be no frames at all */
        return NULL;
    const kprof_profiled_frame *frame = &code->frames[own->own_frame];
    const size_t around = own->first_frame + own->frame_count - 1 - own->own_frame;
    const bool is_own =
        kprof_own_code_has(frame->file->path, frame->file->home, frame[around].file->path, frame[around].file->home);
    const size_t skipped = is_own || around == 0 ? 0 : around - 1;
    return KPROF_FIRST(it, frame + 1 + skipped, around - skipped, it->file != frame->file && it->line > 0);
}

static double samples_of(const kprof_profiled_code *code, const double *values, const char *reason)
{
    const size_t at =
        KPROF_FIND(i, code->reason_count, code->reasons[i].known && strcmp(code->reasons[i].known->name, reason) == 0);
    const size_t column = at < code->reason_count ? code->reasons[at].all : SIZE_MAX; /* or only the stalls have one */
    return column != SIZE_MAX ? values[column] : 0;
}

/* Recorded samples hold to this without exception: Long Scoreboard counts warps that wait for any access but those of
 * shared memory, and Short Scoreboard those that wait for one of these, or for another unit. */
static bool is_far(const kprof_profiled_instruction *producer)
{
    return producer->space && strcmp(producer->space, "Shared") != 0;
}

typedef enum wanted { WANTED_FAR, WANTED_NEAR, WANTED_MATRIX } wanted;

/* The last one of the best of those whose values an instruction waits for. */
static size_t choose_producer(const kprof_profiled_code *code, size_t instruction, wanted what)
{
    enum { UNFIT, UNKNOWN, FIT }; /* nobody knows what is no access, such as a bulk copy */
    const kprof_profiled_instruction *own = &code->instructions[instruction];
    size_t found = SIZE_MAX;
    int most = UNKNOWN;
    for (size_t i = 0; i < own->wait_count; i++) {
        const size_t number = code->waits[own->first_wait + i];
        const kprof_profiled_instruction *producer = &code->instructions[number];
        const bool multiplies = producer->text && kprof_instruction_multiplies(producer->text);
        const bool is_known = producer->space || multiplies || what == WANTED_MATRIX;
        const bool is_access = what != WANTED_MATRIX && is_far(producer) == (what == WANTED_FAR);
        const bool is_wanted = multiplies ? what == WANTED_MATRIX : is_access;
        const int fit = !is_known ? UNKNOWN : is_wanted ? FIT : UNFIT;
        found = fit >= most ? number : found;
        most = fit >= most ? fit : most;
    }
    return found;
}

size_t kprof_profiled_producer(const kprof_profiled_code *code, size_t instruction)
{
    const double *values = kprof_profiled_values(code, instruction);
    const bool is_far = samples_of(code, values, "long_scoreboard") >= samples_of(code, values, "short_scoreboard");
    return choose_producer(code, instruction, is_far ? WANTED_FAR : WANTED_NEAR);
}

size_t kprof_profiled_awaited(const kprof_profiled_code *code, size_t instruction)
{
    double pct;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, kprof_profiled_values(code, instruction), 0, &pct);
    const char *name = reason && reason->known ? reason->known->name : "";
    if (strcmp(name, "long_scoreboard") == 0 || strcmp(name, "short_scoreboard") == 0)
        return kprof_profiled_producer(code, instruction);
    if (strcmp(name, "gmma") == 0)
        return choose_producer(code, instruction, WANTED_MATRIX);
    const char *opcode = kprof_stall_cause_opcode(name, strlen(name));
    const size_t cause = opcode ? kprof_stall_cause(code, opcode, instruction) : instruction;
    return cause == instruction ? SIZE_MAX : cause;
}

size_t kprof_profiled_hottest(const kprof_profiled_code *code, const size_t *members, size_t count)
{
    size_t hottest = SIZE_MAX;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const double samples = sum_of_samples(code, kprof_profiled_values(code, members[i]), false);
        if (samples > most)
            hottest = members[i];
        most = samples > most ? samples : most;
    }
    return hottest;
}

size_t kprof_profiled_row_awaited(const kprof_profiled_code *code, const double *values, size_t hottest)
{
    enum { LEAST_PCT = 25, MOST = 100 / LEAST_PCT }; /* as of WaitedFor */
    double pct;
    if (hottest == SIZE_MAX)
        return SIZE_MAX;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, kprof_profiled_values(code, hottest), 0, &pct);
    const bool is_frequent =
        KPROF_ANY(rank, MOST, kprof_profiled_stall(code, values, rank, &pct) == reason && pct >= LEAST_PCT);
    return is_frequent ? kprof_profiled_awaited(code, hottest) : SIZE_MAX;
}

void kprof_code_put_place(char *out, size_t size, const kprof_code_file *file, uint32_t line)
{
    char number[16];
    const size_t digits = (size_t)snprintf(number, sizeof number, ":%u", line);
    kprof_fit_text(out, size - digits, file->name);
    memcpy(out + strlen(out), number, digits + 1);
}

static void name_frames(const kprof_loaded_code *loaded, const kprof_profiled_line *line, kprof_hot_line *hot)
{
    const size_t hottest = kprof_profiled_hottest(&loaded->code, loaded->lines.members + line->first, line->count);
    const kprof_profiled_frame *caller = hottest == SIZE_MAX ? NULL : kprof_profiled_caller(&loaded->code, hottest);
    const kprof_profiled_frame *library = hottest == SIZE_MAX ? NULL : kprof_profiled_library(&loaded->code, hottest);
    if (caller)
        kprof_code_put_place(hot->caller, sizeof hot->caller, caller->file, caller->line);
    if (library)
        kprof_code_put_place(hot->library, sizeof hot->library, library->file, library->line);
}

/* Instructions with the sum of what was measured of them. */
typedef struct measured {
    const size_t *members; /* [count] */
    size_t count;
    const double *values;
} measured;

/* The instruction that causes most samples of the first reason; SIZE_MAX: these are where the wait is. */
static size_t find_cause(const kprof_profiled_code *code, const measured *of)
{
    double pct, most = 0;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, of->values, 0, &pct);
    const char *opcode = reason ? kprof_stall_cause_opcode(reason->name, reason->length) : NULL;
    size_t cause = SIZE_MAX;
    for (size_t i = 0; i < of->count && opcode; i++) {
        const double samples = kprof_profiled_values(code, of->members[i])[reason->all];
        if (!(samples > most))
            continue;
        most = samples;
        cause = kprof_stall_cause(code, opcode, of->members[i]);
    }
    return cause;
}

static void name_cause(const kprof_profiled_code *code, const measured *of, kprof_hot_line *hot)
{
    const size_t cause = find_cause(code, of);
    const kprof_profiled_frame *frame = cause == SIZE_MAX ? NULL : kprof_profiled_place(code, cause);
    if (cause == SIZE_MAX)
        return;
    if (frame && (frame->file != hot->file || frame->line != hot->line))
        kprof_code_put_place(hot->caused_at, sizeof hot->caused_at, frame->file, frame->line);
    else if (!hot->file && cause != of->members[0])
        snprintf(hot->caused_at, sizeof hot->caused_at, "0x%04lx", code->instructions[cause].offset);
}

/* A row of samples, and where it is. */
static kprof_hot_line hot_line(const kprof_profiled_code *code, const double *values, double all)
{
    kprof_hot_line hot = {.pct = 100 * kprof_profiled_number(code, values, KPROF_NUMBER_SAMPLES) / all};
    double pct;
    const kprof_profiled_reason *reason = kprof_profiled_stall(code, values, 0, &pct);
    if (reason)
        kprof_profiled_reason_name(reason, hot.stall, sizeof hot.stall);
    return hot;
}

static void insert_hot(const kprof_hot_line *hot, kprof_hot_lines *out)
{
    size_t at = out->count;
    while (at > 0 && out->items[at - 1].pct < hot->pct)
        at--;
    if (at == KPROF_HOT_LINES_MAX || !(hot->pct > 0))
        return;
    out->count += out->count < KPROF_HOT_LINES_MAX;
    memmove(&out->items[at + 1], &out->items[at], (out->count - 1 - at) * sizeof *out->items);
    out->items[at] = *hot;
}

/* "0x0110"; "0x0110 of called" where the kernel calls functions. */
static void name_instruction(const kprof_profiled_code *code, size_t number, kprof_hot_line *hot)
{
    const kprof_profiled_instruction *instruction = &code->instructions[number];
    const bool are_several = code->function_count > 1;
    const size_t length =
        (size_t)snprintf(hot->place, sizeof hot->place, "0x%04lx%s", instruction->offset, are_several ? " of " : "");
    if (are_several)
        kprof_fit_text(hot->place + length, sizeof hot->place - length,
                       code->functions[instruction->function].demangled);
}

/* Instructions without a line are left out where others have one. */
void kprof_hot_lines_find(const kprof_code_profiles *profiles, const kprof_code_profile *profile, kprof_hot_lines *out)
{
    const kprof_loaded_code *loaded = kprof_code_load(profiles, profile);
    out->count = 0;
    if (!loaded)
        return;
    const kprof_profiled_code *code = &loaded->code;
    const bool has_lines = kprof_profiled_has_lines(code);
    const double all = kprof_profiled_number(code, code->totals, KPROF_NUMBER_SAMPLES);
    for (size_t i = 0; all > 0 && has_lines && i < loaded->lines.count; i++) {
        const kprof_profiled_line *line = &loaded->lines.items[i];
        if (!line->file)
            continue;
        kprof_hot_line hot = hot_line(code, line->values, all);
        kprof_code_put_place(hot.place, sizeof hot.place, line->file, line->line);
        hot.file = line->file;
        hot.line = line->line;
        name_frames(loaded, line, &hot);
        name_cause(code, &(measured){loaded->lines.members + line->first, line->count, line->values}, &hot);
        insert_hot(&hot, out);
    }
    for (size_t i = 0; all > 0 && !has_lines && i < code->instruction_count; i++) {
        kprof_hot_line hot = hot_line(code, kprof_profiled_values(code, i), all);
        name_instruction(code, i, &hot);
        name_cause(code, &(measured){&i, 1, kprof_profiled_values(code, i)}, &hot);
        insert_hot(&hot, out);
    }
}

void kprof_hot_line_describe(const kprof_hot_line *line, kprof_strbuf *out)
{
    const kprof_human share = kprof_units_human(line->pct, "%", false);
    if (line->reason) {
        kprof_strbuf_printf(out, "not known: %s", line->reason);
        return;
    }
    kprof_strbuf_printf(out, "%s %s, ", line->file ? "line" : "instruction", line->place);
    if (*line->library)
        kprof_strbuf_printf(out, "in %s, ", line->library);
    if (*line->caller)
        kprof_strbuf_printf(out, "called from %s, ", line->caller);
    kprof_human_put(&share, out);
    kprof_strbuf_puts(out, " of the samples");
    if (*line->stall)
        kprof_strbuf_printf(out, " (%s%s%s)", line->stall, *line->caused_at ? " at " : "", line->caused_at);
}
