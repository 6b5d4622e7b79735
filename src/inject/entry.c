/* Entry of the injection library: CUDA loads it at cuInit through CUDA_INJECTION64_PATH and calls InitializeInjection,
 * the one symbol it exports. It is a file of its own because the library over the simulated machine has another one. */
#include "cupti/device_ops.h"
#include "inject/process.h"

#define ENTRY(name) .name = kprof_##name,

/* The real machine. */
static const kprof_device_ops cupti_device = {KPROF_DEVICE_FUNCTIONS(ENTRY)};

int InitializeInjection(void) __attribute__((visibility("default")));

int InitializeInjection(void)
{
    kprof_process_start(&cupti_device);
    return 1; /* anything else would fail the application's cuInit */
}
