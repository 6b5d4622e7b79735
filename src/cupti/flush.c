/* Three kernels: one reads memory several times the size of L2, so that nothing of the application stays there; one
 * discards what was read, so that L2 is empty and evicts nothing; one runs more instructions than the instruction
 * caches hold. */
#include "cupti/flush.h"

#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/driver.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Reads of an L2 in two halves evict with less than a full sweep's certainty: three sizes were enough on GH100. */
#define SWEEP_L2_SIZES 3
#define BLOCK_THREADS  256
#define BYTES_PER_READ 16
#define LINE_BYTES     128
/* 16 bytes each: 192 KB, more than an SM's instruction caches (128 KB on GH100). */
#define CODE_INSTRUCTIONS 12288

/* Each thread reads 16 bytes, bypassing L1. The store never happens; it keeps the loads from being dropped. */
static const char sweep_ptx[] = ".visible .entry kprof_sweep(.param .u64 memory)\n"
                                "{\n"
                                "  .reg .pred %p;\n"
                                "  .reg .b32 %r<9>;\n"
                                "  .reg .b64 %rd<4>;\n"
                                "  ld.param.u64 %rd1, [memory];\n"
                                "  mov.u32 %r1, %ctaid.x;\n"
                                "  mov.u32 %r2, %ntid.x;\n"
                                "  mov.u32 %r3, %tid.x;\n"
                                "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
                                "  mul.wide.u32 %rd2, %r4, 16;\n"
                                "  add.s64 %rd3, %rd1, %rd2;\n"
                                "  ld.global.cg.v4.u32 {%r5, %r6, %r7, %r8}, [%rd3];\n"
                                "  xor.b32 %r5, %r5, %r6;\n"
                                "  xor.b32 %r7, %r7, %r8;\n"
                                "  xor.b32 %r5, %r5, %r7;\n"
                                "  setp.eq.u32 %p, %r5, 0x5bd1e995;\n"
                                "  @%p st.global.u32 [%rd3], %r5;\n"
                                "  ret;\n"
                                "}\n";

/* Each thread drops one line of 128 bytes from L2 without writing it back; needs compute capability 8.0. */
static const char discard_ptx[] = ".visible .entry kprof_discard(.param .u64 memory)\n"
                                  "{\n"
                                  "  .reg .b32 %r<5>;\n"
                                  "  .reg .b64 %rd<4>;\n"
                                  "  ld.param.u64 %rd1, [memory];\n"
                                  "  mov.u32 %r1, %ctaid.x;\n"
                                  "  mov.u32 %r2, %ntid.x;\n"
                                  "  mov.u32 %r3, %tid.x;\n"
                                  "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
                                  "  mul.wide.u32 %rd2, %r4, 128;\n"
                                  "  add.s64 %rd3, %rd1, %rd2;\n"
                                  "  discard.global.L2 [%rd3], 128;\n"
                                  "  ret;\n"
                                  "}\n";

struct kprof_flush {
    const kprof_driver_api *driver;
    CUfunction sweep, discard, code; /* discard: NULL where the chip cannot */
    CUdeviceptr memory;
    size_t bytes;
    unsigned sm_count;
};

/* A long straight line of instructions that no compiler can shorten, since each depends on the one before. */
static void write_code_kernel(kprof_strbuf *ptx)
{
    kprof_strbuf_puts(ptx, ".visible .entry kprof_code(.param .u64 memory)\n"
                           "{\n"
                           "  .reg .pred %p;\n"
                           "  .reg .b32 %r<3>;\n"
                           "  .reg .b64 %rd1;\n"
                           "  ld.param.u64 %rd1, [memory];\n"
                           "  mov.u32 %r1, %tid.x;\n"
                           "  mov.u32 %r2, %clock;\n");
    for (unsigned i = 0; i < CODE_INSTRUCTIONS; i++)
        kprof_strbuf_printf(ptx, "  mad.lo.u32 %%r1, %%r1, %%r2, %u;\n", 2 * i + 1);
    kprof_strbuf_puts(ptx, "  setp.eq.u32 %p, %r1, %r2;\n"
                           "  @%p st.global.u32 [%rd1], 0;\n"
                           "  ret;\n"
                           "}\n");
}

static CUresult load_kernels(kprof_flush *flush, bool can_discard)
{
    const kprof_driver_api *driver = flush->driver;
    /* Optimising would make compiling, on a program's first profiled launch, take twice as long. */
    CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {NULL}; /* level 0 */
    CUmodule module;
    kprof_strbuf ptx = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&ptx, ".version 7.4\n.target %s\n.address_size 64\n", can_discard ? "sm_80" : "sm_75");
    kprof_strbuf_puts(&ptx, sweep_ptx);
    if (can_discard)
        kprof_strbuf_puts(&ptx, discard_ptx);
    write_code_kernel(&ptx);
    CUresult result =
        ptx.failed ? CUDA_ERROR_OUT_OF_MEMORY : driver->cuModuleLoadDataEx_(&module, ptx.data, 1, options, values);
    kprof_strbuf_free(&ptx);
    if (result == CUDA_SUCCESS)
        result = driver->cuModuleGetFunction_(&flush->sweep, module, "kprof_sweep");
    if (result == CUDA_SUCCESS && can_discard)
        result = driver->cuModuleGetFunction_(&flush->discard, module, "kprof_discard");
    return result == CUDA_SUCCESS ? driver->cuModuleGetFunction_(&flush->code, module, "kprof_code") : result;
}

static CUresult prepare(kprof_flush *flush)
{
    const kprof_driver_api *driver = flush->driver;
    CUdevice device;
    int l2_bytes = 0, cc_major = 0, sm_count = 0;
    CUresult result = driver->cuCtxGetDevice_(&device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute_(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute_(&cc_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute_(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result == CUDA_SUCCESS)
        result = load_kernels(flush, cc_major >= 8);
    flush->bytes = (size_t)l2_bytes * SWEEP_L2_SIZES;
    flush->sm_count = (unsigned)sm_count;
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAlloc_(&flush->memory, flush->bytes);
    /* Zeros: the sweep's condition is then never met. */
    return result == CUDA_SUCCESS ? driver->cuMemsetD8_(flush->memory, 0, flush->bytes) : result;
}

kprof_status kprof_flush_open(kprof_flush **out)
{
    *out = NULL;
    kprof_flush *flush = calloc(1, sizeof *flush);
    if (!flush)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to flush caches with");
    kprof_status status = kprof_driver_load(&flush->driver);
    CUresult result = status == KPROF_OK ? prepare(flush) : CUDA_SUCCESS;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        status =
            kprof_fail(KPROF_NO_MEMORY, "the device has no room for the %zu bytes that flush its caches", flush->bytes);
    else if (result != CUDA_SUCCESS)
        status = kprof_fail(KPROF_INTERNAL, "the cache flush cannot be set up: %s", kprof_driver_error(result));
    if (status != KPROF_OK) {
        free(flush);
        return status;
    }
    *out = flush;
    return KPROF_OK;
}

static CUresult launch(kprof_flush *flush, CUfunction kernel, size_t blocks, unsigned threads)
{
    void *parameters[] = {&flush->memory};
    return flush->driver->cuLaunchKernel_(kernel, (unsigned)blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL);
}

kprof_status kprof_flush_run(kprof_flush *flush)
{
    size_t reads = flush->bytes / BYTES_PER_READ, lines = flush->bytes / LINE_BYTES;
    CUresult result = launch(flush, flush->code, 2 * flush->sm_count, 32);
    if (result == CUDA_SUCCESS)
        result = launch(flush, flush->sweep, reads / BLOCK_THREADS, BLOCK_THREADS);
    if (result == CUDA_SUCCESS && flush->discard)
        result = launch(flush, flush->discard, lines / BLOCK_THREADS, BLOCK_THREADS);
    if (result == CUDA_SUCCESS)
        result = flush->driver->cuCtxSynchronize_();
    if (result != CUDA_SUCCESS)
        return kprof_fail(KPROF_INTERNAL, "flushing the caches: %s", kprof_driver_error(result));
    return KPROF_OK;
}

void kprof_flush_close(kprof_flush *flush)
{
    free(flush);
}
