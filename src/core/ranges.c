/* Decides as a range begins, so that a launch looks at one flag. */
#include "core/ranges.h"
#include "core/log.h"
#include "core/numbers.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Marks of a range: a bit for each expression of --nvtx-include whose instance it is, if that is chosen. */
#define IS_STEP         (UINT64_C(1) << 63)
#define MOST_INCLUDED   62
#define RANGE_FILTER    "--range-filter"
#define SCHEDULE        "--schedule"
#define MOST_STEPS      UINT64_C(1000000000) /* for each number of a schedule */
#define NUMBERS         5
#define SCHEDULE_FORMAT "SKIP_FIRST,WAIT,WARMUP,ACTIVE,REPEAT"

typedef enum step_kind { NO_STEPS, STEPS_OF_NVTX, STEPS_OF_CALLS, STEPS_OF_LAUNCHES } step_kind;

typedef struct schedule {
    uint64_t skip_first, wait, warmup, active, repeat; /* repeat: 0: for ever */
} schedule;

struct kprof_ranges {
    bool restarts;                    /* NVTX ranges are numbered in each range of calls, and both are to be chosen */
    kprof_numbers *calls, *instances; /* NULL: they do not matter */
    bool measures;                    /* each NVTX range is measured as one */
    atomic_bool is_between_calls;     /* a start call came, and no stop call since */
    atomic_bool call_is_chosen;
    _Atomic uint64_t call_count;
    _Atomic uint64_t instance_counts[MOST_INCLUDED];

    step_kind kind;
    schedule schedule;
    kprof_nvtx_filter *step; /* the expression of --step */
    _Atomic uint64_t steps;  /* that have begun */
    _Atomic uint64_t open;   /* NVTX ranges that are steps */
    atomic_bool step_is_active;
};

static bool is_active(const schedule *s, uint64_t step)
{
    const uint64_t cycle = s->wait + s->warmup + s->active;
    if (step < s->skip_first || (s->repeat > 0 && (step - s->skip_first) / cycle >= s->repeat))
        return false;
    return (step - s->skip_first) % cycle >= s->wait + s->warmup;
}

static kprof_status parse_schedule(const char *text, schedule *out)
{
    uint64_t *const numbers[NUMBERS] = {&out->skip_first, &out->wait, &out->warmup, &out->active, &out->repeat};
    const char *at = text;
    size_t count = 0;
    for (bool more = true; more && count <= NUMBERS; count++) {
        const size_t digits = strspn(at, "0123456789");
        const uint64_t number = strtoull(at, NULL, 10);
        more = at[digits] == ',';
        if (digits == 0 || digits > 10 || number > MOST_STEPS || (at[digits] && !more))
            return kprof_fail(KPROF_USAGE,
                              SCHEDULE " %s: \"%.*s\" is no number of steps, 0 to %" PRIu64 "; write " SCHEDULE_FORMAT
                                       ", such as 10,1,1,3,2",
                              text, (int)strcspn(at, ","), at, MOST_STEPS);
        if (count < NUMBERS)
            *numbers[count] = number;
        at += digits + more;
    }
    if (count != NUMBERS)
        return kprof_fail(KPROF_USAGE,
                          SCHEDULE " %s: it takes five numbers, " SCHEDULE_FORMAT ", such as 10,1,1,3,2; REPEAT 0 goes "
                                   "on for ever",
                          text);
    if (out->active == 0)
        return kprof_fail(KPROF_USAGE,
                          SCHEDULE " %s: no step is measured, as ACTIVE, the fourth number, is 0; write 1 or more",
                          text);
    return KPROF_OK;
}

static kprof_status make_schedule(const kprof_filter_spec *spec, kprof_ranges *out)
{
    static const kprof_strlist nothing = KPROF_STRLIST_INIT;
    char *expression[] = {spec->step};
    kprof_status status = parse_schedule(spec->schedule, &out->schedule);
    out->kind = spec->step                                        ? STEPS_OF_NVTX
                : spec->profiler_calls == KPROF_FROM_A_START_CALL ? STEPS_OF_CALLS
                                                                  : STEPS_OF_LAUNCHES;
    if (status == KPROF_OK && spec->step)
        status = kprof_nvtx_filter_new((const char *const[]){"--step", NULL}, &(kprof_strlist){expression, 1, 1},
                                       &nothing, &out->step);
    return status;
}

static kprof_status refuse_range(const char *text)
{
    return kprof_fail(KPROF_USAGE,
                      RANGE_FILTER
                      " %s: write [yes|no]:RANGES:RANGES, such as :2: for the second range between cudaProfilerStart "
                      "and cudaProfilerStop, or ::[2-4] for instances 2 to 4 of the NVTX ranges of --nvtx-include",
                      text);
}

/* "[yes|no]:START/STOP RANGES:NVTX RANGES", taken apart in place. */
static kprof_status parse_range_filter(const kprof_filter_spec *spec, char *text, kprof_ranges *out)
{
    char *calls = strchr(text, ':'), *instances = calls ? strchr(calls + 1, ':') : NULL;
    if (!instances)
        return refuse_range(spec->range_filter);
    *calls++ = *instances++ = '\0';
    if ((*text && kprof_yes_or_no(text) < 0) || (!*calls && !*instances))
        return refuse_range(spec->range_filter);
    out->restarts = kprof_yes_or_no(text) == 1;
    kprof_status status = *calls ? kprof_numbers_new(RANGE_FILTER, calls, &out->calls) : KPROF_OK;
    if (status == KPROF_OK && *instances)
        status = kprof_numbers_new(RANGE_FILTER, instances, &out->instances);
    return status;
}

static kprof_status make_range_filter(const kprof_filter_spec *spec, kprof_ranges *out)
{
    KPROF_AUTO_FREE char *text = kprof_strdup(spec->range_filter);
    kprof_status status =
        text ? parse_range_filter(spec, text, out) : kprof_fail(KPROF_NO_MEMORY, RANGE_FILTER ": out of memory");
    if (status != KPROF_OK)
        return status;
    if (out->instances && (spec->nvtx_include.count == 0 || spec->nvtx_include.count > MOST_INCLUDED))
        return kprof_fail(KPROF_USAGE,
                          RANGE_FILTER " %s: instances of NVTX ranges are those of --nvtx-include; give it, up to %d "
                                       "times",
                          spec->range_filter, MOST_INCLUDED);
    if ((out->calls || out->restarts) && spec->profiler_calls == KPROF_PROFILER_CALLS_IGNORED)
        return kprof_fail(KPROF_USAGE,
                          RANGE_FILTER " %s counts calls of cudaProfilerStart, which --disable-profiler-start-stop "
                                       "ignores; leave one of them out",
                          spec->range_filter);
    return KPROF_OK;
}

kprof_status kprof_ranges_new(const kprof_filter_spec *spec, kprof_ranges **out)
{
    *out = NULL;
    if (spec->step && !spec->schedule)
        return kprof_fail(KPROF_USAGE, "--step %s says what " SCHEDULE " counts; give " SCHEDULE " too", spec->step);
    if (!spec->range_filter && !spec->schedule && !spec->measures_ranges)
        return KPROF_OK;
    kprof_ranges *ranges = kprof_calloc(1, sizeof *ranges);
    if (!ranges)
        return kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    ranges->measures = spec->measures_ranges;
    kprof_status status = spec->range_filter ? make_range_filter(spec, ranges) : KPROF_OK;
    if (status == KPROF_OK && ranges->measures && spec->nvtx_include.count > MOST_INCLUDED)
        status = kprof_fail(KPROF_USAGE, "--nvtx-include: give at most %d where ranges are measured", MOST_INCLUDED);
    if (status == KPROF_OK && spec->schedule)
        status = make_schedule(spec, ranges);
    if (status == KPROF_OK)
        *out = ranges;
    else
        kprof_ranges_free(ranges);
    return status;
}

void kprof_ranges_free(kprof_ranges *ranges)
{
    if (!ranges)
        return;
    kprof_numbers_free(ranges->calls);
    kprof_numbers_free(ranges->instances);
    kprof_nvtx_filter_free(ranges->step);
    free(ranges);
}

static void begin_step(kprof_ranges *ranges)
{
    atomic_store(&ranges->step_is_active, is_active(&ranges->schedule, atomic_fetch_add(&ranges->steps, 1)));
}

void kprof_ranges_note_call(kprof_ranges *ranges, bool starts)
{
    if (atomic_exchange(&ranges->is_between_calls, starts) == starts)
        return;
    const uint64_t number = starts ? atomic_fetch_add(&ranges->call_count, 1) + 1 : 0;
    for (size_t i = 0; starts && ranges->restarts && i < MOST_INCLUDED; i++)
        atomic_store(&ranges->instance_counts[i], 0);
    atomic_store(&ranges->call_is_chosen, starts && (!ranges->calls || kprof_numbers_have(ranges->calls, number)));
    if (ranges->kind == STEPS_OF_CALLS && starts)
        begin_step(ranges);
    else if (ranges->kind == STEPS_OF_CALLS)
        atomic_store(&ranges->step_is_active, false);
}

bool kprof_ranges_counts(const kprof_ranges *ranges)
{
    return ranges->instances || ranges->step || ranges->measures;
}

uint64_t kprof_ranges_begin(kprof_ranges *ranges, const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *open,
                            size_t begun)
{
    uint64_t marks = 0;
    const bool matters = ranges->instances || ranges->measures;
    const uint64_t completed = matters ? kprof_nvtx_filter_completed(filter, open, begun) : 0;
    const bool counts = !ranges->restarts || atomic_load(&ranges->is_between_calls);
    for (size_t i = 0; counts && i < MOST_INCLUDED; i++) {
        if (!(completed >> i & 1))
            continue;
        const uint64_t number = atomic_fetch_add(&ranges->instance_counts[i], 1) + 1;
        marks |= (uint64_t)(!ranges->instances || kprof_numbers_have(ranges->instances, number)) << i;
    }
    if (ranges->measures && marks)
        marks |= KPROF_RANGE_IS_MEASURED;
    if (!ranges->step || !kprof_nvtx_filter_completed(ranges->step, open, begun))
        return marks;
    if (atomic_fetch_add(&ranges->open, 1) == 0) /* one within a step is part of it */
        begin_step(ranges);
    return marks | IS_STEP;
}

void kprof_ranges_end(kprof_ranges *ranges, uint64_t marks)
{
    if ((marks & IS_STEP) && atomic_fetch_sub(&ranges->open, 1) == 1)
        atomic_store(&ranges->step_is_active, false);
}

bool kprof_ranges_are_idle(const kprof_ranges *ranges)
{
    const bool has_steps = ranges->kind == STEPS_OF_NVTX || ranges->kind == STEPS_OF_CALLS;
    return has_steps && !atomic_load_explicit(&ranges->step_is_active, memory_order_relaxed);
}

/* As in ncu, with "no" a launch may be in one of the ranges or in the other. */
static bool takes_either(const kprof_ranges *ranges)
{
    return ranges->calls && ranges->instances && !ranges->restarts;
}

bool kprof_ranges_match_calls(const kprof_ranges *ranges)
{
    const bool matters = (ranges->calls || ranges->restarts) && !takes_either(ranges);
    return !matters || atomic_load_explicit(&ranges->call_is_chosen, memory_order_relaxed);
}

unsigned kprof_ranges_nvtx_how(const kprof_ranges *ranges)
{
    if (takes_either(ranges) && atomic_load_explicit(&ranges->call_is_chosen, memory_order_relaxed))
        return KPROF_NVTX_INCLUDES_ALL;
    return ranges->instances ? KPROF_NVTX_BY_INSTANCE : 0;
}

bool kprof_ranges_match_position(const kprof_ranges *ranges, uint64_t position)
{
    return ranges->kind != STEPS_OF_LAUNCHES || is_active(&ranges->schedule, position);
}

bool kprof_ranges_are_over(const kprof_ranges *ranges, uint64_t position)
{
    const schedule *s = &ranges->schedule;
    const uint64_t end = s->skip_first + s->repeat * (s->wait + s->warmup + s->active);
    if (ranges->kind == NO_STEPS || s->repeat == 0)
        return false;
    if (ranges->kind == STEPS_OF_LAUNCHES)
        return position >= end;
    return !atomic_load_explicit(&ranges->step_is_active, memory_order_relaxed) && atomic_load(&ranges->steps) >= end;
}

kprof_range_counts kprof_ranges_count(const kprof_ranges *ranges)
{
    kprof_range_counts counts = {.calls = atomic_load(&ranges->call_count)};
    for (size_t i = 0; i < MOST_INCLUDED; i++)
        counts.instances += atomic_load(&ranges->instance_counts[i]);
    return counts;
}

uint64_t kprof_ranges_steps(const kprof_ranges *ranges, uint64_t position)
{
    return ranges->kind == STEPS_OF_LAUNCHES ? position : atomic_load(&ranges->steps);
}

uint64_t kprof_ranges_first_step(const kprof_ranges *ranges)
{
    const schedule *s = &ranges->schedule;
    return ranges->kind == NO_STEPS ? 0 : s->skip_first + s->wait + s->warmup + 1;
}
