/* Finds the preloaded library's control, and sets it. */
#include "cupti/output.h"

#include <dlfcn.h>
#include <stddef.h>

static _Atomic(kprof_output_control *) control; /* NULL: there is none */

void kprof_output_find(void)
{
    atomic_store(&control, (kprof_output_control *)dlsym(RTLD_DEFAULT, KPROF_OUTPUT_NAME));
}

bool kprof_output_watch(void)
{
    kprof_output_control *output = atomic_load(&control);
    if (output)
        atomic_store(&output->watches, true);
    return output != NULL;
}

unsigned kprof_output_seen(void)
{
    kprof_output_control *output = atomic_load(&control);
    return output ? atomic_load(&output->seen) : 0;
}

void kprof_output_drop(bool drops)
{
    kprof_output_control *output = atomic_load(&control);
    if (output)
        atomic_store(&output->drops, drops);
}
