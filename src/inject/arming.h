/* Lets the command line arm this process and take that back while the application runs: --armed no. */
#ifndef KPROF_INJECT_ARMING_H
#define KPROF_INJECT_ARMING_H

#include "core/status.h"

/* Wait, unarmed, for what the command line wants of this process. If that wants processes armed which begin now, this
 * one is when the function returns. Call it once CUPTI's callbacks are on, within the call that starts CUDA. OUTPUT
 * where the process can make no switch (core/control.h). */
kprof_status kprof_arming_start(void) KPROF_MUST_CHECK;

#endif
