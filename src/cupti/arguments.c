/* The driver tells the offset and size of each parameter. */
#include "cupti/arguments.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAMETERS 1024

static bool grow(kprof_arguments *arguments, size_t size_bytes)
{
    unsigned char *grown = realloc(arguments->buffer, size_bytes);
    if (!grown)
        return false;
    memset(grown + arguments->size_bytes, 0, size_bytes - arguments->size_bytes);
    arguments->buffer = grown;
    arguments->size_bytes = size_bytes;
    return true;
}

static bool copy_parameters(const kprof_driver_api *driver, const kprof_given_arguments *given, kprof_arguments *out)
{
    CUfunction function = given->function;
    size_t offset, size;
    /* cudart passes a CUkernel in place of the function */
    const bool is_function = driver->cuFuncGetParamInfo_(function, 0, &offset, &size) == CUDA_SUCCESS;
    for (size_t i = 0; i < MAX_PARAMETERS; i++) {
        CUresult result = is_function ? driver->cuFuncGetParamInfo_(function, i, &offset, &size)
                                      : driver->cuKernelGetParamInfo_((CUkernel)function, i, &offset, &size);
        if (result != CUDA_SUCCESS)
            return true;           /* past the last one */
        if (!given->parameters[i]) /* the driver may refuse the launch before it reads that */
            return false;
        size_t end = offset + size;
        if (end > out->size_bytes && !grow(out, end))
            return false;
        memcpy(out->buffer + offset, given->parameters[i], size);
    }
    return false;
}

/* `extra`: name and value by turns; the buffer and its size are all that CUDA defines. */
static bool copy_extra(void **extra, kprof_arguments *out)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            size = *(const size_t *)extra[1];
        else
            return false;
    }
    if (!buffer || size == 0)
        return true;
    if (!grow(out, size))
        return false;
    memcpy(out->buffer, buffer, size);
    return true;
}

bool kprof_arguments_copy(const kprof_driver_api *driver, const kprof_given_arguments *given, kprof_arguments *out)
{
    out->size_bytes = 0;
    if (given->parameters)
        return copy_parameters(driver, given, out);
    return !given->extra || copy_extra(given->extra, out);
}

void kprof_arguments_free(kprof_arguments *arguments)
{
    free(arguments->buffer);
    *arguments = (kprof_arguments){0};
}
