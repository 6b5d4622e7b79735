/* Compiles modules of kprof's own. */
#pragma once

#include "cupti/driver.h"

/* Compile PTX for the GPU of the current context, once: that takes longer than loading what comes out of it. *code is
 * the caller's to free; NULL where memory ran out, or the driver refuses. */
CUresult kprof_compile(const kprof_driver_api *driver, const char *ptx, void **code);
