/* Has a kernel of kprof's own print, to find out whether the preloaded library sees how this driver writes. */
#include "cupti/driver.h"
#include "cupti/output.h"

/* printf("%s", ""): nothing comes to stdout, however the driver writes it. Texts have names as the compiler gives them,
 * so that they are taken for no variables (modules.c). */
static const char ptx[] = ".version 6.5\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);\n"
                          ".global .align 1 .b8 $format[3] = {37, 115, 0};\n"
                          ".global .align 1 .b8 $nothing[1] = {0};\n"
                          ".visible .entry kprof_print_nothing()\n"
                          "{\n"
                          ".local .align 8 .b8 list[8];\n"
                          ".reg .b64 %a<4>;\n"
                          ".param .b32 status;\n"
                          ".param .b64 first;\n"
                          ".param .b64 second;\n"
                          "mov.u64 %a1, $nothing;\n"
                          "cvta.global.u64 %a1, %a1;\n"
                          "mov.u64 %a2, list;\n"
                          "st.local.u64 [%a2], %a1;\n"
                          "cvta.local.u64 %a2, %a2;\n"
                          "mov.u64 %a3, $format;\n"
                          "cvta.global.u64 %a3, %a3;\n"
                          "st.param.b64 [first], %a3;\n"
                          "st.param.b64 [second], %a2;\n"
                          "call.uni (status), vprintf, (first, second);\n"
                          "ret;\n"
                          "}\n";

/* The module stays loaded: the driver may crash where the address of code that was unloaded comes up again. */
static CUresult print_nothing(const kprof_driver_api *driver, CUstream stream)
{
    CUmodule module;
    CUfunction kernel;
    CUresult result = driver->cuModuleLoadData_(&module, ptx);
    KPROF_THEN(result, driver->cuModuleGetFunction_(&kernel, module, "kprof_print_nothing"));
    KPROF_THEN(result, driver->cuLaunchKernel_(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    return result == CUDA_SUCCESS ? driver->cuCtxSynchronize_() : result;
}

bool kprof_output_is_seen(void *stream)
{
    static enum { UNKNOWN, SEEN, UNSEEN } known; /* the gate is held */
    const kprof_driver_api *driver;
    if (known == UNKNOWN) {
        const unsigned before = kprof_output_seen();
        known = kprof_driver_load(&driver) == KPROF_OK && print_nothing(driver, stream) == CUDA_SUCCESS &&
                        kprof_output_seen() != before
                    ? SEEN
                    : UNSEEN;
    }
    return known == SEEN;
}
