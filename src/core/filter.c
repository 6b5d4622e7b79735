/* Decides which launches to profile: a slow test of names, once per function, and a lock-free count of every launch. */
#include "core/filter.h"
#include "core/bytes.h"
#include "core/log.h"
#include "core/numbers.h"
#include "core/ranges.h"
#include "core/regex.h"
#include "core/strbuf.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Devices with a count of their own, by CUDA's number; as many as the device mask has bits. */
#define DEVICES 64

/* Configurations with a count of their own. A filter that has had this many takes no launch of another one. */
#define MOST_CONFIGS ((size_t)1 << 16)
#define CONFIG_LISTS 4096

typedef struct counter {
    _Atomic uint64_t matching; /* after launch_skip_before_match */
    _Atomic uint64_t taken;    /* where launch_count is a limit: without those that were given back */
    _Atomic uint64_t waiting;  /* for the application: those beyond the limit count */
} counter;

/* Shapes are compared byte by byte. */
_Static_assert(sizeof(kprof_filter_launch) == 9 * sizeof(uint32_t), "there is nothing between the members");

/* A configuration is added once and stays, so that looking for it takes no lock. */
typedef struct config {
    struct config *next;
    kprof_filter_launch shape; /* of any device */
    counter counter;
} config;

/* A context or a stream. */
typedef struct wanted_part {
    bool is_given;
    uint64_t number;
    kprof_regex *name; /* compared instead of the number; or NULL */
} wanted_part;

struct kprof_filter {
    kprof_filter_spec spec;
    kprof_regex *regex; /* NULL: compare with spec.kernel, if there is one */
    wanted_part parts[KPROF_PARTS];
    kprof_numbers *invocations;                         /* NULL: all */
    kprof_nvtx_filter *nvtx;                            /* NULL: ranges do not matter */
    kprof_nvtx_filter *functions[KPROF_FUNCTION_KINDS]; /* the same of frames */
    kprof_ranges *ranges;                               /* NULL: nobody counts them */
    atomic_bool stopped, was_started;                   /* by the application's calls */
    _Atomic uint64_t launches[DEVICES];                 /* of any kernel; [0] alone, unless each device counts */
    counter counters[DEVICES];                          /* likewise */
    _Atomic(config *) *configs; /* [CONFIG_LISTS] lists, by hash; NULL: they do not count by themselves */
    atomic_size_t config_count;
};

static kprof_status make_part(const char *text, wanted_part *out)
{
    if (!text)
        return KPROF_OK;
    *out = (wanted_part){.is_given = true, .number = strtoull(text, NULL, 10)};
    const bool is_number = text[strspn(text, "0123456789")] == '\0';
    return is_number ? KPROF_OK : kprof_regex_new_whole("--kernel-id", text, &out->name);
}

/* Functions make up a stack, as pushed NVTX ranges do: "step" is written "step/" there. */
static bool add_pushed(const kprof_strlist *from, kprof_strlist *out)
{
    bool added = true;
    for (size_t i = 0; i < from->count && added; i++) {
        const char *marks = kprof_regex_pattern(from->items[i]) ? "/" : "/[]"; /* brackets belong to the pattern */
        added =
            kprof_strlist_take(out, kprof_strprintf("%s%s", from->items[i], strpbrk(from->items[i], marks) ? "" : "/"));
    }
    return added;
}

static kprof_status make_functions(const char *const options[2], const kprof_strlist *wanted,
                                   const kprof_strlist *unwanted, kprof_nvtx_filter **out)
{
    kprof_strlist include = KPROF_STRLIST_INIT, exclude = KPROF_STRLIST_INIT;
    const bool added = add_pushed(wanted, &include) && add_pushed(unwanted, &exclude);
    kprof_status status = added ? kprof_nvtx_filter_new(options, &include, &exclude, out)
                                : kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    KPROF_FREE_LISTS(&include, &exclude);
    return status;
}

kprof_status kprof_filter_new(const kprof_filter_spec *spec, kprof_filter **out)
{
    static const char *const nvtx[] = {"--nvtx-include", "--nvtx-exclude"};
    static const char *const python[] = {"--python-include", "--python-exclude"};
    static const char *const native[] = {"--native-include", "--native-exclude"};
    *out = NULL;
    kprof_filter *filter = kprof_calloc(1, sizeof *filter);
    if (!filter)
        return kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    filter->spec = (kprof_filter_spec){.kernel = spec->kernel ? kprof_strdup(spec->kernel) : NULL,
                                       .name_base = spec->name_base,
                                       .launch_skip = spec->launch_skip,
                                       .launch_count = spec->launch_count,
                                       .launch_skip_before_match = spec->launch_skip_before_match,
                                       .filter_mode = spec->filter_mode,
                                       .device_mask = spec->device_mask,
                                       .profiler_calls = spec->profiler_calls};
    atomic_init(&filter->stopped, spec->profiler_calls == KPROF_FROM_A_START_CALL);
    const bool has_configs = spec->filter_mode == KPROF_FILTER_PER_CONFIG;
    filter->configs = has_configs ? kprof_calloc(CONFIG_LISTS, sizeof *filter->configs) : NULL;
    const char *pattern = spec->kernel ? kprof_regex_pattern(spec->kernel) : NULL;
    kprof_status status = KPROF_OK;
    if (!kprof_strlist_add_all(&filter->spec.mangled, &spec->mangled) || (has_configs && !filter->configs) ||
        (spec->kernel && !filter->spec.kernel))
        status = kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    else if (pattern)
        status = kprof_regex_new("-k", pattern, &filter->regex);
    KPROF_THEN(status, make_part(spec->context, &filter->parts[KPROF_PART_CONTEXT]));
    KPROF_THEN(status, make_part(spec->stream, &filter->parts[KPROF_PART_STREAM]));
    if (status == KPROF_OK && spec->invocation)
        status = kprof_numbers_new("--kernel-id", spec->invocation, &filter->invocations);
    KPROF_THEN(status, kprof_nvtx_filter_new(nvtx, &spec->nvtx_include, &spec->nvtx_exclude, &filter->nvtx));
    KPROF_THEN(status, make_functions(python, &spec->python_include, &spec->python_exclude,
                                      &filter->functions[KPROF_PYTHON_FUNCTIONS]));
    if (status == KPROF_OK)
        status = make_functions(native, &spec->native_include, &spec->native_exclude,
                                &filter->functions[KPROF_NATIVE_FUNCTIONS]);
    KPROF_THEN(status, kprof_ranges_new(spec, &filter->ranges));
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
    for (size_t i = 0; filter->configs && i < CONFIG_LISTS; i++)
        for (config *next, *at = atomic_load(&filter->configs[i]); at; at = next) {
            next = at->next;
            free(at);
        }
    free(filter->configs);
    kprof_regex_free(filter->regex);
    for (size_t i = 0; i < KPROF_PARTS; i++)
        kprof_regex_free(filter->parts[i].name);
    kprof_numbers_free(filter->invocations);
    kprof_nvtx_filter_free(filter->nvtx);
    for (size_t i = 0; i < KPROF_FUNCTION_KINDS; i++)
        kprof_nvtx_filter_free(filter->functions[i]);
    kprof_ranges_free(filter->ranges);
    free(filter->spec.kernel);
    kprof_strlist_free(&filter->spec.mangled);
    free(filter);
}

kprof_status kprof_filter_check(const kprof_filter_spec *spec)
{
    kprof_filter *filter = NULL;
    kprof_status status = kprof_filter_new(spec, &filter);
    kprof_filter_free(filter);
    return status;
}

/* Is it a pattern of a name that NVTX gives? */
static bool is_name(const char *part)
{
    return part && part[strspn(part, "0123456789")];
}

bool kprof_filter_asks_nvtx(const kprof_filter_spec *spec)
{
    return spec->nvtx_include.count + spec->nvtx_exclude.count > 0 || is_name(spec->context) || is_name(spec->stream) ||
           spec->step;
}

bool kprof_filter_asks_functions(const kprof_filter_spec *spec)
{
    return spec->python_include.count + spec->python_exclude.count + spec->native_include.count +
               spec->native_exclude.count >
           0;
}

bool kprof_filter_ends(const kprof_filter_spec *spec)
{
    const char *repeat = spec->schedule ? strrchr(spec->schedule, ',') : NULL;
    const bool has_steps = spec->step || spec->profiler_calls == KPROF_FROM_A_START_CALL;
    return repeat && strtoull(repeat + 1, NULL, 10) > 0 && (has_steps || spec->filter_mode == KPROF_FILTER_GLOBAL);
}

/* Return the name in the form that the spec compares; caller frees. NULL when out of memory. */
static char *name_to_match(const kprof_filter *filter, const char *mangled)
{
    if (filter->spec.name_base == KPROF_NAME_MANGLED)
        return kprof_strdup(mangled);
    return filter->spec.name_base == KPROF_NAME_DEMANGLED ? kprof_demangle(mangled) : kprof_name_function(mangled);
}

bool kprof_filter_match_name(const kprof_filter *filter, const char *mangled)
{
    if (filter->spec.mangled.count > 0 && !kprof_strlist_contains(&filter->spec.mangled, mangled))
        return false;
    if (!filter->spec.kernel)
        return true;
    KPROF_AUTO_FREE char *name = name_to_match(filter, mangled);
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
    return match == KPROF_REGEX_YES;
}

bool kprof_filter_needs_nvtx(const kprof_filter *filter)
{
    return filter->nvtx != NULL;
}

bool kprof_filter_match_nvtx(const kprof_filter *filter, const kprof_nvtx_ranges *ranges)
{
    const unsigned how = filter->ranges ? kprof_ranges_nvtx_how(filter->ranges) : 0;
    return !filter->nvtx || kprof_nvtx_filter_match(filter->nvtx, ranges, how);
}

bool kprof_filter_needs_functions(const kprof_filter *filter, kprof_function_kind kind)
{
    return filter->functions[kind] != NULL;
}

bool kprof_filter_match_functions(const kprof_filter *filter, kprof_function_kind kind,
                                  const kprof_nvtx_ranges *functions, unsigned how)
{
    return !filter->functions[kind] || kprof_nvtx_filter_match(filter->functions[kind], functions, how);
}

bool kprof_filter_counts_ranges(const kprof_filter *filter)
{
    return filter->ranges && kprof_ranges_counts(filter->ranges);
}

uint64_t kprof_filter_begin_range(kprof_filter *filter, const kprof_nvtx_ranges *ranges, size_t begun)
{
    return kprof_ranges_begin(filter->ranges, filter->nvtx, ranges, begun);
}

void kprof_filter_end_range(kprof_filter *filter, uint64_t marks)
{
    kprof_ranges_end(filter->ranges, marks);
}

bool kprof_filter_is_between_steps(const kprof_filter *filter)
{
    return filter->ranges && kprof_ranges_are_idle(filter->ranges);
}

bool kprof_filter_match_calls(const kprof_filter *filter)
{
    return !filter->ranges || kprof_ranges_match_calls(filter->ranges);
}

kprof_range_counts kprof_filter_count_ranges(const kprof_filter *filter)
{
    return filter->ranges ? kprof_ranges_count(filter->ranges) : (kprof_range_counts){0, 0};
}

uint64_t kprof_filter_work(const kprof_filter *filter)
{
    uint64_t work = filter->regex ? kprof_regex_work(filter->regex) : 0;
    work += filter->nvtx ? kprof_nvtx_filter_work(filter->nvtx) : 0;
    for (size_t i = 0; i < KPROF_FUNCTION_KINDS; i++)
        work += filter->functions[i] ? kprof_nvtx_filter_work(filter->functions[i]) : 0;
    return work;
}

void kprof_filter_note_profiler(kprof_filter *filter, bool starts)
{
    if (filter->spec.profiler_calls == KPROF_PROFILER_CALLS_IGNORED)
        return;
    if (starts)
        atomic_store_explicit(&filter->was_started, true, memory_order_relaxed);
    if (filter->ranges)
        kprof_ranges_note_call(filter->ranges, starts);
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

static bool has_device(const kprof_filter *filter, unsigned device)
{
    const uint64_t mask = filter->spec.device_mask;
    return mask == 0 || (device < DEVICES && (mask >> device & 1));
}

bool kprof_filter_needs_place(const kprof_filter *filter)
{
    return filter->parts[KPROF_PART_CONTEXT].is_given || filter->parts[KPROF_PART_STREAM].is_given ||
           (filter->invocations && filter->spec.device_mask != 0);
}

bool kprof_filter_needs_part_name(const kprof_filter *filter, kprof_filter_part part)
{
    return filter->parts[part].name != NULL;
}

bool kprof_filter_match_part_name(const kprof_filter *filter, kprof_filter_part part, const char *name)
{
    return kprof_regex_match(filter->parts[part].name, name) == KPROF_REGEX_YES;
}

bool kprof_filter_match_place(const kprof_filter *filter, const kprof_filter_place *place)
{
    bool matches = has_device(filter, place->device);
    for (size_t i = 0; i < KPROF_PARTS && matches; i++) {
        const wanted_part *wanted = &filter->parts[i];
        matches = !wanted->is_given || (wanted->name ? place->is_named[i] : wanted->number == place->numbers[i]);
    }
    return matches;
}

bool kprof_filter_match_invocation(const kprof_filter *filter, uint64_t number)
{
    return number > 0 && (!filter->invocations || kprof_numbers_have(filter->invocations, number));
}

static unsigned index_of_device(const kprof_filter *filter, unsigned device)
{
    return filter->spec.filter_mode == KPROF_FILTER_PER_DEVICE ? device % DEVICES : 0;
}

bool kprof_filter_needs_shape(const kprof_filter *filter)
{
    return filter->configs != NULL;
}

static config *find_config(config *list, const kprof_filter_launch *shape)
{
    while (list && memcmp(&list->shape, shape, sizeof *shape) != 0)
        list = list->next;
    return list;
}

/* Take a number for one more configuration. */
static bool may_add_config(kprof_filter *filter)
{
    const size_t before = atomic_fetch_add_explicit(&filter->config_count, 1, memory_order_relaxed);
    if (before == MOST_CONFIGS)
        kprof_log(KPROF_LOG_WARNING,
                  "--filter-mode per-launch-config: launches have had %zu configurations; those of others are not "
                  "measured; -k chooses fewer kernels",
                  MOST_CONFIGS);
    if (before >= MOST_CONFIGS)
        atomic_store_explicit(&filter->config_count, MOST_CONFIGS + 1, memory_order_relaxed);
    return before < MOST_CONFIGS;
}

/* Put the configuration in front of its list, unless another thread has done so. NULL when there is no space for it. */
static config *add_config(kprof_filter *filter, _Atomic(config *) *list, const kprof_filter_launch *shape)
{
    config *made = may_add_config(filter) ? kprof_calloc(1, sizeof *made) : NULL;
    if (!made)
        return NULL;
    made->shape = *shape;
    made->next = atomic_load_explicit(list, memory_order_acquire);
    config *known = NULL;
    while (!(known = find_config(made->next, shape)) &&
           !atomic_compare_exchange_weak_explicit(list, &made->next, made, memory_order_release, memory_order_acquire))
        continue;
    if (known)
        free(made);
    return known ? known : made;
}

/* Return what counts the launch; NULL when nothing does, as there are too many configurations. */
static counter *find_counter(kprof_filter *filter, const kprof_filter_launch *launch)
{
    if (!filter->configs)
        return &filter->counters[index_of_device(filter, launch->device)];
    kprof_filter_launch shape = *launch;
    shape.device = 0;
    const uint64_t hash = kprof_hash(KPROF_HASH_START, &shape, sizeof shape);
    _Atomic(config *) *list = &filter->configs[(hash ^ hash >> 32) % CONFIG_LISTS];
    config *found = find_config(atomic_load_explicit(list, memory_order_acquire), &shape);
    if (!found)
        found = add_config(filter, list, &shape);
    return found ? &found->counter : NULL;
}

/* Take one of the launches that launch_count leaves. */
static bool take_one(counter *counts, uint64_t limit)
{
    uint64_t taken = atomic_load_explicit(&counts->taken, memory_order_relaxed);
    while (taken < limit && !atomic_compare_exchange_weak_explicit(&counts->taken, &taken, taken + 1,
                                                                   memory_order_relaxed, memory_order_relaxed))
        continue;
    return taken < limit;
}

bool kprof_filter_take_launch(kprof_filter *filter, bool matches, const kprof_filter_launch *launch)
{
    const kprof_filter_spec *spec = &filter->spec;
    const unsigned device = launch->device;
    if (spec->launch_skip_before_match &&
        atomic_fetch_add_explicit(&filter->launches[index_of_device(filter, device)], 1, memory_order_relaxed) <
            spec->launch_skip_before_match)
        return false;
    if (!matches || !has_device(filter, device))
        return false;
    counter *counts = find_counter(filter, launch);
    if (!counts)
        return false;
    uint64_t position = atomic_fetch_add_explicit(&counts->matching, 1, memory_order_relaxed);
    if (position < spec->launch_skip ||
        (filter->ranges && !kprof_ranges_match_position(filter->ranges, position - spec->launch_skip)))
        return false;
    return spec->launch_count == 0 || take_one(counts, spec->launch_count);
}

static void restart(counter *counts)
{
    atomic_store_explicit(&counts->matching, 0, memory_order_relaxed);
    atomic_store_explicit(&counts->taken, 0, memory_order_relaxed);
    atomic_store_explicit(&counts->waiting, 0, memory_order_relaxed);
}

void kprof_filter_restart(kprof_filter *filter)
{
    for (size_t i = 0; i < DEVICES; i++) {
        atomic_store_explicit(&filter->launches[i], 0, memory_order_relaxed);
        restart(&filter->counters[i]);
    }
    for (size_t i = 0; filter->configs && i < CONFIG_LISTS; i++)
        for (config *at = atomic_load_explicit(&filter->configs[i], memory_order_acquire); at; at = at->next)
            restart(&at->counter);
}

void kprof_filter_take_another(kprof_filter *filter, const kprof_filter_launch *launch)
{
    counter *counts = filter->spec.launch_count ? find_counter(filter, launch) : NULL;
    uint64_t taken = counts ? atomic_load_explicit(&counts->taken, memory_order_relaxed) : 0;
    while (taken > 0 && !atomic_compare_exchange_weak_explicit(&counts->taken, &taken, taken - 1, memory_order_relaxed,
                                                               memory_order_relaxed))
        continue; /* 0: counting has begun anew meanwhile */
}

void kprof_filter_leave_uncounted(kprof_filter *filter, const kprof_filter_launch *launch)
{
    const uint64_t most = filter->spec.launch_count;
    counter *counts = most > 0 ? find_counter(filter, launch) : NULL;
    if (counts && atomic_fetch_add_explicit(&counts->waiting, 1, memory_order_relaxed) < most)
        kprof_filter_take_another(filter, launch);
}

/* Position of the next launch, from 0, as --schedule counts them. None where each device or configuration counts. */
static uint64_t next_position(const kprof_filter *filter)
{
    const uint64_t matching = atomic_load_explicit(&filter->counters[0].matching, memory_order_relaxed);
    const uint64_t skipped = filter->spec.launch_skip;
    return filter->spec.filter_mode == KPROF_FILTER_GLOBAL && matching > skipped ? matching - skipped : 0;
}

uint64_t kprof_filter_steps(const kprof_filter *filter, uint64_t *first)
{
    *first = filter->ranges ? kprof_ranges_first_step(filter->ranges) : 0;
    return filter->ranges ? kprof_ranges_steps(filter->ranges, next_position(filter)) : 0;
}

/* The devices and configurations are not known: if each counts, a mask of devices tells when all have had theirs. */
bool kprof_filter_exhausted(const kprof_filter *filter)
{
    const kprof_filter_spec *spec = &filter->spec;
    const uint64_t counters = spec->filter_mode == KPROF_FILTER_PER_DEVICE ? spec->device_mask : 1;
    bool is_exhausted = spec->launch_count > 0 && counters != 0 && !filter->configs;
    for (unsigned i = 0; i < DEVICES && is_exhausted; i++) {
        const uint64_t taken = atomic_load_explicit(&filter->counters[i].taken, memory_order_relaxed);
        is_exhausted = !(counters >> i & 1) || taken >= spec->launch_count;
    }
    return is_exhausted || (filter->ranges && kprof_ranges_are_over(filter->ranges, next_position(filter)));
}
