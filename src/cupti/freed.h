/* Memory that the application frees, and modules that it unloads, while a batch is open. Replays use them, so the
 * driver takes them away only afterwards. */
#pragma once

#include "cupti/redirect.h"

#include <stdbool.h>

/* Starts as zeros. One of a context, for one thread at a time. */
typedef struct kprof_freed {
    kprof_thing *things; /* [count], owned; of a module, its variable is not set */
    size_t count, modules;
    size_t bytes, most_bytes; /* of all; most_bytes: 0 until known */
    void *code;               /* of the modules that kprof has unloaded instead; NULL until wanted */
} kprof_freed;

/* The application has loaded a module. Thread-safe, like the next two. */
void kprof_freed_note_load(const void *context, const void *module);
/* It has unloaded this one. */
void kprof_freed_note_unload(const void *module);
/* The context ends, and its modules with it. */
void kprof_freed_forget(const void *context);

/* From inside the enter hook of a cuMemFree or cuModuleUnload in the context: keep what `argument` points to, and put
 * something of kprof's own there, which the driver takes away instead. For a module the context must be idle. False,
 * and nothing is changed, where it is no allocation or module of this context alone, the driver does not take another
 * argument, or the device has too little space. */
bool kprof_freed_keep(kprof_freed *freed, const void *context, kprof_argument argument);
/* Free all that is kept if the context is current; else keep it. To be called while the context is idle. */
void kprof_freed_let_go(kprof_freed *freed, const void *context);
/* Return how many modules have been let go of: after that handles of kernels may come back. Thread-safe. */
unsigned kprof_freed_unloads(void);
/* Free the lists; what is kept goes with the context. */
void kprof_freed_close(kprof_freed *freed);
