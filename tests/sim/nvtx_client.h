/* NVTX's headers make this of a module of an application: pointers to functions, which the tool sets. */
#pragma once

#include "inject/nvtx_abi.h"

#include <stdbool.h>

#define NVTX_CLIENT_PLACES 16

static kprof_nvtx_function nvtx_core[NVTX_CLIENT_PLACES], nvtx_core2[NVTX_CLIENT_PLACES], nvtx_cuda[NVTX_CLIENT_PLACES],
    nvtx_cudart[NVTX_CLIENT_PLACES];

static int nvtx_get_functions(int module, kprof_nvtx_function ***out_table, unsigned *out_size)
{
    static kprof_nvtx_function *const lists[] = {[KPROF_NVTX_MODULE_CORE] = nvtx_core,
                                                 [KPROF_NVTX_MODULE_CUDA] = nvtx_cuda,
                                                 [KPROF_NVTX_MODULE_CUDART] = nvtx_cudart,
                                                 [KPROF_NVTX_MODULE_CORE2] = nvtx_core2};
    static kprof_nvtx_function *places[sizeof lists / sizeof *lists][NVTX_CLIENT_PLACES];
    if (module < 0 || module >= (int)(sizeof lists / sizeof *lists) || !lists[module])
        return 0;
    for (unsigned i = 1; i < NVTX_CLIENT_PLACES; i++)
        places[module][i] = &lists[module][i];
    *out_table = places[module];
    *out_size = NVTX_CLIENT_PLACES;
    return 1;
}

static const void *nvtx_get_table(uint32_t table)
{
    static const kprof_nvtx_callbacks callbacks = {sizeof callbacks, nvtx_get_functions};
    return table == KPROF_NVTX_CALLBACKS ? &callbacks : NULL;
}

static inline kprof_nvtx_event nvtx_event(const char *name)
{
    return (kprof_nvtx_event){
        .version = 3, .size = sizeof(kprof_nvtx_event), .message_type = KPROF_NVTX_ASCII, .message.ascii = name};
}

/* The functions do nothing, and return 0, where no tool has set them. */
#define NVTX_CALL(list, PLACE, type, ...) (list[KPROF_NVTX_##PLACE] ? ((type)list[KPROF_NVTX_##PLACE])(__VA_ARGS__) : 0)

static inline int nvtx_push(const char *name)
{
    return NVTX_CALL(nvtx_core, RANGE_PUSH_A, int (*)(const char *), name);
}

static inline void nvtx_mark(const char *name)
{
    if (nvtx_core[KPROF_NVTX_MARK_A])
        ((void (*)(const char *))nvtx_core[KPROF_NVTX_MARK_A])(name);
}

static inline int nvtx_pop(void)
{
    return NVTX_CALL(nvtx_core, RANGE_POP, int (*)(void), );
}

static inline uint64_t nvtx_start(const char *name)
{
    return NVTX_CALL(nvtx_core, RANGE_START_A, uint64_t(*)(const char *), name);
}

static inline void nvtx_end(uint64_t id)
{
    if (nvtx_core[KPROF_NVTX_RANGE_END])
        ((void (*)(uint64_t))nvtx_core[KPROF_NVTX_RANGE_END])(id);
}

static inline void *nvtx_domain(const char *name)
{
    return NVTX_CALL(nvtx_core2, DOMAIN_CREATE_A, void *(*)(const char *), name);
}

static inline int nvtx_domain_push(void *domain, const kprof_nvtx_event *event)
{
    return NVTX_CALL(nvtx_core2, DOMAIN_RANGE_PUSH_EX, int (*)(void *, const kprof_nvtx_event *), domain, event);
}

static inline int nvtx_domain_pop(void *domain)
{
    return NVTX_CALL(nvtx_core2, DOMAIN_RANGE_POP, int (*)(void *), domain);
}

static inline void nvtx_name_context(void *context, const char *name)
{
    if (nvtx_cuda[KPROF_NVTX_NAME_CU_CONTEXT_A])
        ((void (*)(void *, const char *))nvtx_cuda[KPROF_NVTX_NAME_CU_CONTEXT_A])(context, name);
}

/* As the runtime's function does. */
static inline void nvtx_name_stream(void *stream, const char *name)
{
    if (nvtx_cudart[KPROF_NVTX_NAME_CUDA_STREAM_A])
        ((void (*)(void *, const char *))nvtx_cudart[KPROF_NVTX_NAME_CUDA_STREAM_A])(stream, name);
}
