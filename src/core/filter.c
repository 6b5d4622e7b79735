/* Decides which launches to profile: a name test that may be slow and is asked once per function, and a lock-free count
 * that every launch passes. */
#include "core/filter.h"
#include "core/log.h"
#include "core/regex.h"
#include "core/strbuf.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Devices with a count of their own, by CUDA's number; as many as the device mask has bits. */
#define DEVICES 64

struct kprof_filter {
    kprof_filter_spec spec;
    kprof_regex *regex;                 /* NULL: compare with spec.kernel, if there is one */
    kprof_nvtx_filter *nvtx;            /* NULL: ranges do not matter */
    atomic_bool stopped, was_started;   /* by the application's calls */
    _Atomic uint64_t launches;          /* of any kernel on any device */
    _Atomic uint64_t matching[DEVICES]; /* after launch_skip_before_match; [0] alone, unless each device counts */
    _Atomic uint64_t returned[DEVICES]; /* of those that were taken, likewise */
};

kprof_status kprof_filter_new(const kprof_filter_spec *spec, kprof_filter **out)
{
    *out = NULL;
    kprof_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    filter->spec = *spec;
    filter->spec.kernel = NULL;
    filter->spec.nvtx_include = filter->spec.nvtx_exclude = (kprof_strlist)KPROF_STRLIST_INIT; /* the caller's */
    atomic_init(&filter->stopped, spec->profiler_calls == KPROF_FROM_A_START_CALL);
    kprof_status status = KPROF_OK;
    const char *pattern = spec->kernel ? kprof_regex_pattern(spec->kernel) : NULL;
    if (spec->kernel && !(filter->spec.kernel = kprof_strdup(spec->kernel)))
        status = kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    else if (pattern)
        status = kprof_regex_new("-k", pattern, &filter->regex);
    if (status == KPROF_OK)
        status = kprof_nvtx_filter_new(&spec->nvtx_include, &spec->nvtx_exclude, &filter->nvtx);
    if (status != KPROF_OK) {
        kprof_filter_free(filter);
        return status;
    }
    *out = filter;
    return KPROF_OK;
}

void kprof_filter_free(kprof_filter *filter)
{
    if (!filter)
        return;
    kprof_regex_free(filter->regex);
    kprof_nvtx_filter_free(filter->nvtx);
    free(filter->spec.kernel);
    free(filter);
}

kprof_status kprof_filter_check(const kprof_filter_spec *spec)
{
    kprof_filter *filter = NULL;
    kprof_status status = kprof_filter_new(spec, &filter);
    kprof_filter_free(filter);
    return status;
}

/* Return the name in the form that the spec compares; caller frees. NULL when out of memory. */
static char *name_to_match(const kprof_filter *filter, const char *mangled)
{
    if (filter->spec.name_base == KPROF_NAME_MANGLED)
        return kprof_strdup(mangled);
    char *demangled = kprof_demangle(mangled);
    if (!demangled || filter->spec.name_base == KPROF_NAME_DEMANGLED)
        return demangled;
    char *function = kprof_name_function_base(demangled);
    free(demangled);
    return function;
}

bool kprof_filter_match_name(const kprof_filter *filter, const char *mangled)
{
    if (!filter->spec.kernel)
        return true;
    char *name = name_to_match(filter, mangled);
    if (!name)
        kprof_memory_note_lack();
    if (!name)
        return false;
    kprof_regex_result match;
    if (filter->regex)
        match = kprof_regex_match(filter->regex, name);
    else
        match = strcmp(name, filter->spec.kernel) == 0 ? KPROF_REGEX_YES : KPROF_REGEX_NO;
    if (match == KPROF_REGEX_TOO_LONG)
        kprof_log(KPROF_LOG_WARNING,
                  "-k: the pattern took too long on \"%.200s\", which counts as no match; simplify repetitions", name);
    free(name);
    return match == KPROF_REGEX_YES;
}

bool kprof_filter_needs_nvtx(const kprof_filter *filter)
{
    return filter->nvtx != NULL;
}

bool kprof_filter_match_nvtx(const kprof_filter *filter, const kprof_nvtx_ranges *ranges)
{
    return !filter->nvtx || kprof_nvtx_filter_match(filter->nvtx, ranges);
}

uint64_t kprof_filter_work(const kprof_filter *filter)
{
    return (filter->regex ? kprof_regex_work(filter->regex) : 0) +
           (filter->nvtx ? kprof_nvtx_filter_work(filter->nvtx) : 0);
}

void kprof_filter_note_profiler(kprof_filter *filter, bool starts)
{
    if (filter->spec.profiler_calls == KPROF_PROFILER_CALLS_IGNORED)
        return;
    if (starts)
        atomic_store_explicit(&filter->was_started, true, memory_order_relaxed);
    atomic_store_explicit(&filter->stopped, !starts, memory_order_relaxed);
}

bool kprof_filter_is_stopped(const kprof_filter *filter)
{
    return atomic_load_explicit(&filter->stopped, memory_order_relaxed);
}

bool kprof_filter_awaits_start(const kprof_filter *filter)
{
    return filter->spec.profiler_calls == KPROF_FROM_A_START_CALL &&
           !atomic_load_explicit(&filter->was_started, memory_order_relaxed);
}

bool kprof_filter_match_invocation(const kprof_filter *filter, uint64_t number)
{
    return filter->spec.invocation == 0 || filter->spec.invocation == number;
}

static unsigned find_counter(const kprof_filter *filter, unsigned device)
{
    return filter->spec.per_device ? device % DEVICES : 0;
}

/* Return how many launches are taken that such a counter counts. */
static uint64_t find_most(const kprof_filter *filter, unsigned counter)
{
    return filter->spec.launch_count + atomic_load_explicit(&filter->returned[counter], memory_order_relaxed);
}

bool kprof_filter_take_launch(kprof_filter *filter, bool matches, unsigned device)
{
    const kprof_filter_spec *spec = &filter->spec;
    if (spec->launch_skip_before_match &&
        atomic_fetch_add_explicit(&filter->launches, 1, memory_order_relaxed) < spec->launch_skip_before_match)
        return false;
    if (!matches || (spec->device_mask != 0 && (device >= 64 || !(spec->device_mask >> device & 1))))
        return false;
    const unsigned counter = find_counter(filter, device);
    uint64_t position = atomic_fetch_add_explicit(&filter->matching[counter], 1, memory_order_relaxed);
    if (position < spec->launch_skip)
        return false;
    return spec->launch_count == 0 || position - spec->launch_skip < find_most(filter, counter);
}

void kprof_filter_take_another(kprof_filter *filter, unsigned device)
{
    atomic_fetch_add_explicit(&filter->returned[find_counter(filter, device)], 1, memory_order_relaxed);
}

/* How many devices there are is not known: where each counts, only a mask tells when all have had their launches. */
bool kprof_filter_exhausted(const kprof_filter *filter)
{
    const kprof_filter_spec *spec = &filter->spec;
    const uint64_t counters = spec->per_device ? spec->device_mask : 1;
    bool is_exhausted = spec->launch_count > 0 && counters != 0;
    for (unsigned i = 0; i < DEVICES && is_exhausted; i++) {
        uint64_t matching = atomic_load_explicit(&filter->matching[i], memory_order_relaxed);
        is_exhausted = !(counters >> i & 1) ||
                       (matching >= spec->launch_skip && matching - spec->launch_skip >= find_most(filter, i));
    }
    return is_exhausted;
}
