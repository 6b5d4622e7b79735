/* Has the driver free other memory, or unload another module, than the application names. */
#pragma once

#include "cupti/driver.h"

#include <stdbool.h>

/* The argument of a call that frees memory or unloads a module, where the driver reads it behind the hook. */
typedef struct kprof_argument {
    bool is_module;
    union {
        CUdeviceptr *memory;
        CUmodule *module; /* NULL: it unloads something else */
    };
} kprof_argument;

/* Memory or a module of kprof's own, for such a call to take away. */
typedef struct kprof_thing {
    CUmodule module;
    CUdeviceptr memory; /* of a module: that of its variable */
} kprof_thing;

/* Make one in the current context: `bytes` of memory; or, of `code`, a module that has KPROF_VARIABLE. False, and there
 * is none, where the driver refuses. */
#define KPROF_VARIABLE "kprof_variable"
bool kprof_thing_make(const kprof_driver_api *driver, const void *code, size_t bytes, kprof_thing *out);
CUresult kprof_thing_free(const kprof_driver_api *driver, const kprof_thing *thing);

/* Does the driver free what a hook has put in the place of a call's argument? The first time, call this within a hook,
 * so that its own calls are kprof's, and with a current context. */
bool kprof_redirect_works(void);
/* Does it unload it? The context must be idle. `code`: for modules to try that with. */
bool kprof_redirect_works_for_modules(const void *code);
/* Has kprof found that it does not free it? */
bool kprof_redirect_is_refused(void);
/* Within each such call, before the driver reads its argument. */
void kprof_redirect(kprof_argument argument);
