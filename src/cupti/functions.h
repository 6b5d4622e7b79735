/* Handles of kernels that the application gives. The driver, and nobody else, knows whether one is a kernel's: CUPTI
 * reads a kernel's name from where the handle points, whatever lies there. Thread-safe. */
#pragma once

#include "cupti/driver.h"

/* The CUfunction of a handle; NULL: the driver does not take it. cudart passes a CUkernel in its place, which not every
 * driver call takes. The kernel's module may be loaded for that. */
CUfunction kprof_function_resolve(const kprof_driver_api *driver, CUfunction handle);
/* The same, without ending a capture that another thread has under way. */
CUfunction kprof_function_find(const kprof_driver_api *driver, CUfunction handle);
/* Return `name`, which CUPTI gives for the handle, if the driver takes the handle; else words for a kernel without a
 * name. */
const char *kprof_function_name(const kprof_driver_api *driver, CUfunction handle, const char *name);
/* Code is being unloaded: handles that the driver took may no longer be handles. */
void kprof_functions_forget(void);
