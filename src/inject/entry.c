/* Entry of the injection library, with the two symbols it exports. CUDA loads it at cuInit through
 * CUDA_INJECTION64_PATH and calls InitializeInjection; with --nvtx, NVTX loads it through NVTX_INJECTION64_PATH,
 * earlier or later, and calls InitializeInjectionNvtx2. It is a file of its own because the library over the simulated
 * machine has another one. */
#include "cupti/device_ops.h"
#include "inject/life.h"
#include "inject/nvtx.h"
#include "inject/nvtx_abi.h"

#define ENTRY(name) .name = kprof_##name,

/* The real machine. */
static const kprof_device_ops cupti_device = {KPROF_DEVICE_FUNCTIONS(ENTRY)};

int InitializeInjection(void) __attribute__((visibility("default")));
int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table) __attribute__((visibility("default")));

int InitializeInjection(void)
{
    kprof_life_begin(&cupti_device);
    return 1; /* anything else would fail the application's cuInit */
}

int InitializeInjectionNvtx2(kprof_nvtx_get_table *get_table)
{
    return kprof_nvtx_attach(get_table);
}
