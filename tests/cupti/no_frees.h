/* For tests of snapshots in which the application frees nothing. */
#pragma once

#include "cupti/allocations.h"
#include "cupti/compile.h"
#include "cupti/profiler.h"
#include "cupti/redirect.h"

/* Nothing is freed here while memory is saved. */
size_t kprof_allocations_size(uint64_t address, const void *of)
{
    (void)address, (void)of;
    return 0;
}

void kprof_allocations_note(const kprof_memory_change *change, const void *of)
{
    (void)change, (void)of;
}

static kprof_span host_memory; /* size_bytes: 0 where there is none */

bool kprof_allocations_list_host(kprof_span **out, size_t *count)
{
    *count = host_memory.size_bytes > 0;
    *out = malloc(sizeof **out);
    if (*out)
        **out = host_memory;
    return *out != NULL;
}

bool kprof_redirect_is_refused(void)
{
    return true;
}

bool kprof_redirect_works(void)
{
    return false;
}

bool kprof_redirect_works_for_modules(const void *code)
{
    return false;
}

bool kprof_thing_make(const kprof_driver_api *driver, const void *code, size_t bytes, kprof_thing *out)
{
    (void)driver, (void)code, (void)bytes, (void)out;
    return false;
}

CUresult kprof_thing_free(const kprof_driver_api *driver, const kprof_thing *thing)
{
    (void)driver, (void)thing;
    return CUDA_SUCCESS;
}

CUresult kprof_compile(const kprof_driver_api *driver, const char *ptx, void **code)
{
    (void)driver, (void)ptx, (void)code;
    return CUDA_ERROR_NOT_SUPPORTED;
}

void kprof_profilers_note_unload(void) {}
