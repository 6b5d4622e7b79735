/* Has the driver free other memory than the application names. */
#pragma once

#include <cuda.h>
#include <stdbool.h>

/* Does the driver free what a hook has put in the place of a call's argument? The first time, call this within a hook,
 * so that its own calls are kprof's, and with a current context. */
bool kprof_redirect_works(void);
/* Has kprof found that it does not? */
bool kprof_redirect_is_refused(void);
/* Within each call that frees memory, before the driver reads its argument. */
void kprof_redirect_free(CUdeviceptr *argument);
