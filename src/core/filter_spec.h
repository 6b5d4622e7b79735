/* The launches that the user chose, as plain data: part of the configuration. core/filter.h finds them. */
#pragma once

#include "core/option.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

/* -k is compared with "foo" (no namespace, template arguments or parameters), with the whole demangled signature, or
 * with the symbol as the driver has it. */
typedef enum kprof_name_base { KPROF_NAME_FUNCTION, KPROF_NAME_DEMANGLED, KPROF_NAME_MANGLED } kprof_name_base;

/* The application may call cudaProfilerStart and cudaProfilerStop, or cuProfilerStart and cuProfilerStop. As in ncu,
 * launches are taken from the start, or from the first start call, and not between a stop and the next start. */
typedef enum kprof_profiler_calls {
    KPROF_FROM_THE_START,
    KPROF_FROM_A_START_CALL,
    KPROF_PROFILER_CALLS_IGNORED
} kprof_profiler_calls;

/* --launch-skip and --launch-count count these launches together: all, those of a device, or those of a kernel that
 * have the same grid, block and shared memory. */
typedef enum kprof_filter_mode {
    KPROF_FILTER_GLOBAL,
    KPROF_FILTER_PER_DEVICE,
    KPROF_FILTER_PER_CONFIG
} kprof_filter_mode;

/* The filter as the user gave it: plain data, part of the configuration. The code that fills it in owns it. Its options
 * are the FILTER rows of core/recorder_options.h; NULL, 0 and an empty list stand for no condition. */
typedef struct kprof_filter_spec {
#define OPTION(place, type, field, ...) KPROF_FOR_FILTER_##place(KPROF_OPTION_FIELD(type, field))
#include "core/recorder_options.h"
#undef OPTION
    char *context, *stream;  /* of --kernel-id: a number, or a pattern of the name that NVTX gives it */
    char *invocation;        /* of --kernel-id: only these launches of each kernel, as core/numbers.h has them */
    kprof_strlist mangled;   /* of --census --top: only kernels of these names; none: all */
    uint32_t profiler_calls; /* kprof_profiler_calls */
    bool measures_ranges;    /* --nvtx-include chooses ranges, each to be measured as one */
} kprof_filter_spec;
