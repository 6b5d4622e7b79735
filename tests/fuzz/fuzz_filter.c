/* -k: the first line is the kernel, the second numbers and the names' base; the others are mangled names of kernels,
 * which come from other people's binaries. */
#include "fuzz.h"

#include "core/filter.h"

#include <string.h>

static void match(kprof_filter *filter, const char *name)
{
    bool matches = filter && kprof_filter_match_name(filter, name);
    for (unsigned device = 0; filter && device < 3; device++)
        (void)kprof_filter_take_launch(filter, matches, &(kprof_filter_launch){.device = device});
    KPROF_AUTO_FREE char *demangled = kprof_demangle(name);
    FUZZ_CHECK(demangled != NULL);
    KPROF_AUTO_FREE char *base = kprof_name_function_base(demangled);
    FUZZ_CHECK(base != NULL && strlen(base) <= strlen(demangled));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    kprof_filter_spec spec = {.kernel = fuzz_take_line(&input)};
    kprof_filter *filter = NULL;
    spec.name_base = (kprof_name_base)(fuzz_take_byte(&input) % (KPROF_NAME_MANGLED + 1));
    spec.launch_skip = fuzz_take_byte(&input) % 4;
    spec.launch_count = fuzz_take_byte(&input) % 4;
    spec.device_mask = fuzz_take_byte(&input) % 4;
    spec.filter_mode = (kprof_filter_mode)(fuzz_take_byte(&input) % (KPROF_FILTER_PER_CONFIG + 1));
    free(fuzz_take_line(&input));
    bool is_valid = kprof_filter_new(&spec, &filter) == KPROF_OK;
    FUZZ_CHECK(is_valid == (kprof_filter_check(&spec) == KPROF_OK));
    for (char *name; (name = fuzz_take_line(&input));) {
        match(filter, name);
        free(name);
    }
    if (filter)
        (void)kprof_filter_exhausted(filter);
    kprof_filter_free(filter);
    free(spec.kernel);
    return 0;
}
