/* A program that launches one kernel and checks what it computed: `kprof doctor` measures it. It exits with 1, and says
 * why, where the driver does not run it. */
#include <cuda.h>

#include <dlfcn.h>
#include <stdio.h>

#define COUNT 1024

/* values[i] += i, for each of COUNT threads. */
static const char code[] = ".version 6.4\n"
                           ".target sm_50\n"
                           ".address_size 64\n"
                           ".visible .entry addIndex(.param .u64 values)\n"
                           "{\n"
                           "    .reg .b32 %r<6>;\n"
                           "    .reg .b64 %a<4>;\n"
                           "    ld.param.u64 %a1, [values];\n"
                           "    mov.u32 %r1, %ctaid.x;\n"
                           "    mov.u32 %r2, %ntid.x;\n"
                           "    mov.u32 %r3, %tid.x;\n"
                           "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
                           "    cvta.to.global.u64 %a1, %a1;\n"
                           "    mad.wide.u32 %a2, %r4, 4, %a1;\n"
                           "    ld.global.u32 %r5, [%a2];\n"
                           "    add.u32 %r5, %r5, %r4;\n"
                           "    st.global.u32 [%a2], %r5;\n"
                           "    ret;\n"
                           "}\n";

static int fail(const char *what, const char *reason)
{
    fprintf(stderr, "%s: %s\n", what, reason);
    return 1;
}

/* Call a function of the driver, and leave the caller where it fails. */
#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)
#define CALL(name, ...)                                                                                                \
    do {                                                                                                               \
        __typeof__(&name) function;                                                                                    \
        *(void **)&function = dlsym(driver, TEXT(name));                                                               \
        if (!function)                                                                                                 \
            return fail(TEXT(name), "the driver does not have it");                                                    \
        CUresult result = function(__VA_ARGS__);                                                                       \
        if (result != CUDA_SUCCESS) {                                                                                  \
            char number[16];                                                                                           \
            snprintf(number, sizeof number, "error %d", (int)result);                                                  \
            return fail(TEXT(name), number);                                                                           \
        }                                                                                                              \
    } while (0)

static int launch(void *driver)
{
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr values;
    unsigned host[COUNT];
    void *arguments[] = {&values};
    CALL(cuInit, 0);
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoadData, &module, code);
    CALL(cuModuleGetFunction, &kernel, module, "addIndex");
    CALL(cuMemAlloc, &values, sizeof host);
    CALL(cuMemsetD32, values, 1, COUNT);
    CALL(cuLaunchKernel, kernel, COUNT / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL);
    CALL(cuMemcpyDtoH, host, values, sizeof host);
    CALL(cuMemFree, values);
    for (unsigned i = 0; i < COUNT; i++)
        if (host[i] != 1 + i)
            return fail("addIndex", "it computed something else");
    return 0;
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? launch(driver) : fail("libcuda.so.1", dlerror());
}
