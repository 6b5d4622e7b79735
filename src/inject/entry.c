/* Entry of the injection library: CUDA loads it at cuInit through CUDA_INJECTION64_PATH and calls InitializeInjection,
 * the one symbol it exports. */
#include "cupti/device_ops.h"
#include "inject/process.h"

int InitializeInjection(void) __attribute__((visibility("default")));

int InitializeInjection(void)
{
    kprof_process_start(&kprof_cupti_device);
    return 1; /* anything else would fail the application's cuInit */
}
