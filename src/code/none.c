/* Stands for the rest of this folder in a build without CUDA, which profiles nothing. */
#include "code/code.h"
#include "code/native.h"

#include <stdio.h>

kprof_status kprof_code_read(const void *cubin, size_t size, const kprof_strlist *wanted, kprof_code *out)
{
    (void)cubin, (void)size, (void)wanted;
    *out = (kprof_code)KPROF_CODE_INIT;
    out->line_state = "this build of kprof reads no code";
    snprintf(out->text_state, sizeof out->text_state, "%s", out->line_state);
    return KPROF_UNSUPPORTED;
}

void kprof_code_disassemble(kprof_code *code, const char *cubin_path, kprof_disassemblers *disassemblers)
{
    (void)code, (void)cubin_path, (void)disassemblers;
}

void kprof_disassemblers_free(kprof_disassemblers *disassemblers)
{
    (void)disassemblers;
}

kprof_native_module *kprof_native_open(const char *path)
{
    (void)path;
    return NULL;
}

void kprof_native_close(kprof_native_module *module)
{
    (void)module;
}

kprof_native_place kprof_native_find(kprof_native_module *module, uint64_t address)
{
    (void)module, (void)address;
    return (kprof_native_place){NULL, NULL, 0};
}

void kprof_code_free(kprof_code *code)
{
    *code = (kprof_code)KPROF_CODE_INIT;
}
