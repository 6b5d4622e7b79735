/* Chooses the launches to profile by kernel name, NVTX ranges, device, and the skip and count of matching launches.
 * Spelling and meaning follow ncu's -k, --kernel-name-base, --nvtx-include, --nvtx-exclude, -s, -c,
 * --launch-skip-before-match, --kernel-id, --filter-mode, --range-filter and --devices. */
#pragma once

#include "core/filter_spec.h"
#include "core/nvtx.h"
#include "core/ranges.h"
#include "core/status.h"

typedef struct kprof_filter kprof_filter;

/* Compile the spec (copied). USAGE with a logged message, which shows the place in the pattern, on a bad regex. */
kprof_status kprof_filter_new(const kprof_filter_spec *spec, kprof_filter **out) KPROF_MUST_CHECK;
void kprof_filter_free(kprof_filter *filter);
/* Check the spec as kprof_filter_new does, and keep nothing. */
kprof_status kprof_filter_check(const kprof_filter_spec *spec) KPROF_MUST_CHECK;

/* Does it take NVTX to choose launches so? */
bool kprof_filter_asks_nvtx(const kprof_filter_spec *spec);
/* Does it choose launches by the functions that call them? */
bool kprof_filter_asks_functions(const kprof_filter_spec *spec);

/* Does it have a schedule that comes to an end? */
bool kprof_filter_ends(const kprof_filter_spec *spec);

/* Does this kernel's name match? Demangles and runs a regex: call once per function, keep the answer. Thread-safe. */
bool kprof_filter_match_name(const kprof_filter *filter, const char *mangled);

/* Does the filter ask for the NVTX ranges of launches? */
bool kprof_filter_needs_nvtx(const kprof_filter *filter);
/* Does the filter take a launch in these ranges? True if it asks for none. Thread-safe. */
bool kprof_filter_match_nvtx(const kprof_filter *filter, const kprof_nvtx_ranges *ranges);

/* Does it matter when NVTX ranges begin and end? */
bool kprof_filter_counts_ranges(const kprof_filter *filter);
/* The NVTX range at place `begun` begins; returns its marks. A range with these marks ends. Thread-safe. */
uint64_t kprof_filter_begin_range(kprof_filter *filter, const kprof_nvtx_ranges *ranges, size_t begun);
void kprof_filter_end_range(kprof_filter *filter, uint64_t marks);
/* Is a launch left out now, as --schedule measures other steps? Those count for nothing. Thread-safe. */
bool kprof_filter_is_between_steps(const kprof_filter *filter);
/* Is a launch in a range of the application's calls that --range-filter asks for? Thread-safe. */
bool kprof_filter_match_calls(const kprof_filter *filter);
/* How many steps of --schedule have begun, and the first one, from 1, that is measured; 0: there is no schedule. */
uint64_t kprof_filter_steps(const kprof_filter *filter, uint64_t *first);

/* Functions that a launch is made in. */
typedef enum kprof_function_kind {
    KPROF_PYTHON_FUNCTIONS,
    KPROF_NATIVE_FUNCTIONS,
    KPROF_FUNCTION_KINDS
} kprof_function_kind;
/* Do they matter? If so, does the launch pass, being in these? They are what is pushed, the outermost first, each in
 * the default domain, and once more in that of its file's name. `how`: as for kprof_nvtx_filter_match. */
bool kprof_filter_needs_functions(const kprof_filter *filter, kprof_function_kind kind);
bool kprof_filter_match_functions(const kprof_filter *filter, kprof_function_kind kind,
                                  const kprof_nvtx_ranges *functions, unsigned how);

/* The counts of --range-filter; zeros without it. */
kprof_range_counts kprof_filter_count_ranges(const kprof_filter *filter);

/* The work of matching patterns so far, as kprof_regex_work has it. Thread-safe. */
uint64_t kprof_filter_work(const kprof_filter *filter);

/* The application starts or stops profiling. Repeating a call changes nothing: the runtime's call ends in the
 * driver's, and CUPTI reports both. Thread-safe. */
void kprof_filter_note_profiler(kprof_filter *filter, bool starts);
/* Are launches left out now, as profiling is stopped or was never started? Those count for nothing. Thread-safe. */
bool kprof_filter_is_stopped(const kprof_filter *filter);
/* Has the application never started profiling, though launches wait for that? Thread-safe. */
bool kprof_filter_awaits_start(const kprof_filter *filter);

/* The place of a launch. */
typedef enum kprof_filter_part { KPROF_PART_CONTEXT, KPROF_PART_STREAM, KPROF_PARTS } kprof_filter_part;
typedef struct kprof_filter_place {
    unsigned device;
    uint64_t numbers[KPROF_PARTS];
    bool is_named[KPROF_PARTS]; /* as kprof_filter_match_part_name says, where the filter compares names */
} kprof_filter_place;

/* Does it matter to --kernel-id where a launch is? */
bool kprof_filter_needs_place(const kprof_filter *filter);
/* Does the filter compare the name of this part, and not its number? */
bool kprof_filter_needs_part_name(const kprof_filter *filter, kprof_filter_part part);
/* Does this name of NVTX match? Costs a regex: keep the answer. Thread-safe. */
bool kprof_filter_match_part_name(const kprof_filter *filter, kprof_filter_part part, const char *name);
/* Is the launch where --kernel-id and --devices want it? */
bool kprof_filter_match_place(const kprof_filter *filter, const kprof_filter_place *place);
/* Is this one to take, by its number, from 1, among the launches of its kernel that are in the right place? */
bool kprof_filter_match_invocation(const kprof_filter *filter, uint64_t number);

/* Counting looks at these. All but the device matters only where kprof_filter_needs_shape says so. */
typedef struct kprof_filter_launch {
    unsigned device;
    uint32_t kernel; /* a number that stands for it */
    uint32_t grid[3], block[3], dynamic_smem_bytes;
} kprof_filter_launch;

bool kprof_filter_needs_shape(const kprof_filter *filter);

/* Count one launch and decide whether to profile it. `matches` is the answer of the functions above. Thread-safe and
 * lock-free; the n-th call decides for the n-th launch. */
bool kprof_filter_take_launch(kprof_filter *filter, bool matches, const kprof_filter_launch *launch);

/* A launch that was taken could not be measured, and does not count: one more is taken in its place. Thread-safe. */
void kprof_filter_take_another(kprof_filter *filter, const kprof_filter_launch *launch);

/* The same, for --launch-count such launches at most: all may be like this one, because they wait for the application,
 * say. Thread-safe. */
void kprof_filter_leave_uncounted(kprof_filter *filter, const kprof_filter_launch *launch);

/* Count the launches for --launch-skip, --launch-count and --launch-skip-before-match anew. Thread-safe. */
void kprof_filter_restart(kprof_filter *filter);

/* True once --launch-count launches were taken: nothing more can ever match. Thread-safe. */
bool kprof_filter_exhausted(const kprof_filter *filter);

/* Human-readable name of a mangled symbol, with parameters (libiberty); a copy of `mangled` when it is not a C++ name.
 * Caller frees; NULL when out of memory. */
char *kprof_demangle(const char *mangled);
/* The same without parameters and return type. */
char *kprof_demangle_name(const char *mangled);
/* "vectorized_elementwise_kernel" of "void at::native::vectorized_elementwise_kernel<4, F>(int, F)"; operators, lambdas
 * and "(anonymous namespace)::" handled. Caller frees; NULL when out of memory. */
char *kprof_name_function_base(const char *demangled);
#define KPROF_NAME_OF_GRAPH "CUDAGraph<" /* and how many kernels it has */
/* The same of a mangled symbol, or of a graph; the whole text of what else is no symbol of C++, as a range's name. */
char *kprof_name_function(const char *mangled);
