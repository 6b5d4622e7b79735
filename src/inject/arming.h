/* Lets the command line arm this process and take that back while the application runs: --armed no. */
#pragma once

#include "core/control.h"
#include "core/status.h"

/* Wait, unarmed, for what the command line wants of this process. If it wants new processes armed, this one is armed
 * when the function returns. Call it once CUPTI's callbacks are on, within the call that starts CUDA. OUTPUT where the
 * process can make no switch (core/control.h). */
kprof_status kprof_arming_start(void) KPROF_MUST_CHECK;

/* Do what is wanted, in a thread of kprof's own. It is declared for tests: the listening thread calls it. */
kprof_control_state kprof_arming_follow(const kprof_control_wish *wish);
