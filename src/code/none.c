/* Stands for the rest of this folder in a build without CUDA, which profiles nothing: reports have all that was read.
 */
#include "code/code.h"

kprof_status kprof_code_read(const void *cubin, size_t size, const kprof_strlist *wanted, kprof_code *out)
{
    (void)cubin, (void)size, (void)wanted;
    *out = (kprof_code)KPROF_CODE_INIT;
    out->text_state = out->line_state = "this build of kprof reads no code";
    return KPROF_UNSUPPORTED;
}

void kprof_code_free(kprof_code *code)
{
    *code = (kprof_code)KPROF_CODE_INIT;
}
