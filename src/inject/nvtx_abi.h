/* The interface between NVTX and a tool, as nvtx3/nvToolsExt.h and nvtx3/nvtxDetail/nvtxTypes.h have it. NVTX is in
 * each module of an application, so this never changes; kprof builds without the headers, and a test compares. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Tables that a module exports, and lists of functions in KPROF_NVTX_CALLBACKS. */
enum { KPROF_NVTX_CALLBACKS = 1 };
enum {
    KPROF_NVTX_MODULE_CORE = 1,
    KPROF_NVTX_MODULE_CUDA = 2,
    KPROF_NVTX_MODULE_CUDART = 4,
    KPROF_NVTX_MODULE_CORE2 = 5
};

/* Places of functions in the lists. */
enum {
    KPROF_NVTX_MARK_EX = 1,
    KPROF_NVTX_MARK_A = 2,
    KPROF_NVTX_MARK_W = 3,
    KPROF_NVTX_RANGE_START_EX = 4,
    KPROF_NVTX_RANGE_START_A = 5,
    KPROF_NVTX_RANGE_START_W = 6,
    KPROF_NVTX_RANGE_END = 7,
    KPROF_NVTX_RANGE_PUSH_EX = 8,
    KPROF_NVTX_RANGE_PUSH_A = 9,
    KPROF_NVTX_RANGE_PUSH_W = 10,
    KPROF_NVTX_RANGE_POP = 11,
};
enum {
    KPROF_NVTX_DOMAIN_MARK_EX = 1,
    KPROF_NVTX_DOMAIN_RANGE_START_EX = 2,
    KPROF_NVTX_DOMAIN_RANGE_END = 3,
    KPROF_NVTX_DOMAIN_RANGE_PUSH_EX = 4,
    KPROF_NVTX_DOMAIN_RANGE_POP = 5,
    KPROF_NVTX_DOMAIN_REGISTER_STRING_A = 10,
    KPROF_NVTX_DOMAIN_REGISTER_STRING_W = 11,
    KPROF_NVTX_DOMAIN_CREATE_A = 12,
    KPROF_NVTX_DOMAIN_CREATE_W = 13,
};

enum {
    KPROF_NVTX_NAME_CU_CONTEXT_A = 3,
    KPROF_NVTX_NAME_CU_CONTEXT_W = 4,
    KPROF_NVTX_NAME_CU_STREAM_A = 5,
    KPROF_NVTX_NAME_CU_STREAM_W = 6,
};
enum { KPROF_NVTX_NAME_CUDA_STREAM_A = 3, KPROF_NVTX_NAME_CUDA_STREAM_W = 4 };

typedef void (*kprof_nvtx_function)(void);

typedef struct kprof_nvtx_callbacks {
    size_t struct_size;
    /* Tell where the module keeps its pointers to the functions of a list: table[PLACE] points to one. 0: none. */
    int (*get_functions)(int module, kprof_nvtx_function ***out_table, unsigned *out_size);
} kprof_nvtx_callbacks;

/* A module gives its tables to the tool through this function. */
typedef const void *kprof_nvtx_get_table(uint32_t table);

enum { KPROF_NVTX_ASCII = 1, KPROF_NVTX_UNICODE = 2, KPROF_NVTX_REGISTERED = 3 };

typedef struct kprof_nvtx_event {
    uint16_t version, size; /* size: of the struct, as the module knows it */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        void *registered;
    } message;
} kprof_nvtx_event;
