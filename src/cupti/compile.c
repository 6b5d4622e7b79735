/* The driver's linker compiles, and gives the code away. */
#include "cupti/compile.h"

#include <stdlib.h>
#include <string.h>

CUresult kprof_compile(const kprof_driver_api *driver, const char *ptx, void **code)
{
    CUlinkState link;
    void *linked;
    size_t bytes;
    *code = NULL;
    CUresult result = driver->cuLinkCreate_(0, NULL, NULL, &link);
    if (result != CUDA_SUCCESS)
        return result;
    result =
        driver->cuLinkAddData_(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, "kprof", 0, NULL, NULL);
    KPROF_THEN(result, driver->cuLinkComplete_(link, &linked, &bytes));
    if (result == CUDA_SUCCESS) {
        *code = malloc(bytes);
        if (*code)
            memcpy(*code, linked, bytes);
        else
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    (void)driver->cuLinkDestroy_(link); /* with the code */
    return result;
}
