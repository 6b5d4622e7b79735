/* Decides which launches to profile: a name test that may be slow and is asked once per function, and a lock-free count
 * that every launch passes. */
#include "core/filter.h"
#include "core/log.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REGEX_PREFIX "regex:"

/* A pattern that backtracks for longer than this many steps (tens of milliseconds) counts as no match. */
#define REGEX_MATCH_LIMIT       1000000
#define REGEX_HEAP_LIMIT_KIB    (64 * 1024)
#define REGEX_MAX_PATTERN_BYTES (16 * 1024)

struct kprof_filter {
    kprof_filter_spec spec;
    pcre2_code *regex; /* NULL: compare with spec.kernel, if there is one */
    pcre2_match_context *limits;
    _Atomic uint64_t launches; /* of any kernel on any device */
    _Atomic uint64_t matching; /* after launch_skip_before_match */
};

static kprof_status fail_regex(const char *pattern, int code, size_t offset)
{
    char reason[256];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
    size_t length = strlen(pattern);
    offset = offset < length ? offset : length;
    return kprof_fail(KPROF_USAGE, "-k: %s at character %zu of the pattern: %.*s <-- here %s", reason, offset + 1,
                      (int)offset, pattern, pattern + offset);
}

static kprof_status compile_regex(kprof_filter *filter, const char *pattern)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    if (strlen(pattern) > REGEX_MAX_PATTERN_BYTES)
        return kprof_fail(KPROF_USAGE, "-k: the pattern is longer than %d bytes", REGEX_MAX_PATTERN_BYTES);
    filter->regex =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
    if (!filter->regex)
        return fail_regex(pattern, code, offset);
    filter->limits = pcre2_match_context_create(NULL);
    if (!filter->limits)
        return kprof_fail(KPROF_NO_MEMORY, "-k: out of memory");
    pcre2_set_match_limit(filter->limits, REGEX_MATCH_LIMIT);
    pcre2_set_heap_limit(filter->limits, REGEX_HEAP_LIMIT_KIB);
    return KPROF_OK;
}

kprof_status kprof_filter_new(const kprof_filter_spec *spec, kprof_filter **out)
{
    *out = NULL;
    kprof_filter *filter = calloc(1, sizeof *filter);
    if (!filter)
        return kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    filter->spec = *spec;
    filter->spec.kernel = NULL;
    kprof_status status = KPROF_OK;
    if (spec->kernel && !(filter->spec.kernel = strdup(spec->kernel)))
        status = kprof_fail(KPROF_NO_MEMORY, "launch filter: out of memory");
    else if (spec->kernel && strncmp(spec->kernel, REGEX_PREFIX, strlen(REGEX_PREFIX)) == 0)
        status = compile_regex(filter, spec->kernel + strlen(REGEX_PREFIX));
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
    pcre2_match_context_free(filter->limits);
    pcre2_code_free(filter->regex);
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
        return strdup(mangled);
    char *demangled = kprof_demangle(mangled);
    if (!demangled || filter->spec.name_base == KPROF_NAME_DEMANGLED)
        return demangled;
    char *function = kprof_name_function_base(demangled);
    free(demangled);
    return function;
}

static bool match_regex(const kprof_filter *filter, const char *name)
{
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    if (!match)
        return false;
    int result = pcre2_match(filter->regex, (PCRE2_SPTR)name, strlen(name), 0, 0, match, filter->limits);
    pcre2_match_data_free(match);
    if (result < PCRE2_ERROR_NOMATCH)
        kprof_log(KPROF_LOG_WARNING,
                  "-k: the pattern took too long on \"%.200s\", which counts as no match; simplify nested repetitions",
                  name);
    return result >= 0;
}

bool kprof_filter_match_name(const kprof_filter *filter, const char *mangled)
{
    if (!filter->spec.kernel)
        return true;
    char *name = name_to_match(filter, mangled);
    if (!name)
        return false;
    bool matches = filter->regex ? match_regex(filter, name) : strcmp(name, filter->spec.kernel) == 0;
    free(name);
    return matches;
}

static bool device_selected(const kprof_filter *filter, unsigned device)
{
    uint64_t mask = filter->spec.device_mask;
    return mask == 0 || (device < 64 && (mask >> device & 1));
}

bool kprof_filter_take_launch(kprof_filter *filter, bool name_matches, unsigned device)
{
    const kprof_filter_spec *spec = &filter->spec;
    if (spec->launch_skip_before_match &&
        atomic_fetch_add_explicit(&filter->launches, 1, memory_order_relaxed) < spec->launch_skip_before_match)
        return false;
    if (!name_matches || !device_selected(filter, device))
        return false;
    uint64_t position = atomic_fetch_add_explicit(&filter->matching, 1, memory_order_relaxed);
    if (position < spec->launch_skip)
        return false;
    return spec->launch_count == 0 || position - spec->launch_skip < spec->launch_count;
}

bool kprof_filter_exhausted(const kprof_filter *filter)
{
    const kprof_filter_spec *spec = &filter->spec;
    if (spec->launch_count == 0)
        return false;
    uint64_t matching = atomic_load_explicit(&filter->matching, memory_order_relaxed);
    return matching >= spec->launch_skip && matching - spec->launch_skip >= spec->launch_count;
}
