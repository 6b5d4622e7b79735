/* While launches are not followed, those that come after code with variables was loaded are looked at all the same,
 * until the variables are noted: else replays that begin later could not put them back. */
#pragma once

#include "cupti/driver_call.h"

#include <stdbool.h>

/* Launches are not followed from now on, and may be looked at. With false CUPTI is about to tell of all launches, and
 * no look that is under way may undo that. Thread-safe, as is all here. */
void kprof_peeks_allow(bool allow);
/* A module was loaded. To be called within CUPTI's callback. */
void kprof_peeks_begin(void);
/* Does CUPTI tell of launches only for these looks? */
bool kprof_peeks_run(void);
/* Has this launch, which has left the driver, variables to be noted? */
bool kprof_peeks_want(const kprof_call *call);
/* They have been noted. */
void kprof_peeks_settle(void);
