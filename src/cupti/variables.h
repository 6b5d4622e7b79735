/* Module variables that kernels may change: those of modules whose kernels the application has launched, and those
 * whose addresses it has. Any kernel may know their addresses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Neighbouring variables of a module may be one entry. */
typedef struct kprof_variable {
    const void *context; /* NULL: noted where none was current; kernels of every context may reach it */
    const void *owner;   /* module or library */
    uint64_t address;
    size_t size_bytes; /* 0: not known */
    bool told;         /* the driver tells what allocation it is in */
    bool is_managed;   /* the host reaches it, or the driver does not tell */
} kprof_variable;

/* All functions are thread-safe. A variable that is noted twice is listed once. If one cannot be noted, as when memory
 * runs out, all count as unknown. */
void kprof_variables_note(const void *context, const void *owner, uint64_t address, size_t size_bytes);
/* Note the writable variables of the module that the kernel `function`, a CUfunction of the current context, is in.
 * They count as not known where the kernel's code has not been seen. */
void kprof_variables_note_module(const void *context, void *function, const char *kernel);
/* Was any of those noted managed? */
bool kprof_variables_managed(void);
/* Changes when one was noted that was not known. */
unsigned kprof_variables_version(void);
/* The context's variables, or those of all contexts for NULL, in an array that the caller frees; NULL where there are
 * none. False when they are not known. */
bool kprof_variables_list(const void *context, kprof_variable **out, size_t *count);
/* Add up the sizes of all of them; one that is noted twice may count twice. False when they are not known. */
bool kprof_variables_bytes(uint64_t *out);
/* Add up the sizes of a module's. */
size_t kprof_variables_bytes_of(const void *owner);
/* A module or library was unloaded: forget its variables, and all of any context that are gone with it. What is put
 * where they were, by CUPTI say, must not be taken for them. */
void kprof_variables_unload(const void *owner);
/* One variable is gone, with its module. */
void kprof_variables_drop(const void *context, uint64_t address);
void kprof_variables_forget(const void *context);
