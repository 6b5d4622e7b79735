/* Chooses the calls that CUPTI records, and tells those of the driver that are no part of a call of the runtime. A
 * record takes most of a microsecond of the call's thread, so calls of the driver that launch are not recorded while
 * the runtime makes all of them. */
#pragma once

#include "core/activities.h"
#include "host/load.h"

#include <stdbool.h>
#include <stddef.h>

/* Threads whose last call of the driver waits for the call of the runtime that it may be a part of. */
#define KPROF_CALL_RECORDS_WAITING 64

/* Does a trace tell of this call of the driver, where it is no part of one of the runtime? */
bool kprof_call_records_tell(const kprof_cupti_api *cupti, CUpti_CallbackId id);
/* Have CUPTI record the calls that a trace tells of. The kind RUNTIME is enabled already. */
void kprof_call_records_choose(const kprof_cupti_api *cupti);
/* The calls to report now that a record of this one has come, the earlier one first: returns how many, two at most.
 * Records of a thread come in the order in which its calls ended. Called by one thread at a time, as the next one. */
size_t kprof_call_records_sort(const kprof_call_activity *call, const CUpti_ActivityAPI *record,
                               kprof_call_activity out[2]);
/* Take the calls that still wait: they are parts of no call. `out` has space for KPROF_CALL_RECORDS_WAITING. */
size_t kprof_call_records_rest(kprof_call_activity *out);

/* A call of the driver, or of the runtime, gives out a kernel's handle: from now on the program may launch it through
 * the driver. Call this in CUPTI's callback, before the call. */
void kprof_call_records_note_handle(CUpti_CallbackDomain domain, CUpti_CallbackId id);
/* List those calls; 0 ends the list. */
const CUpti_CallbackId *kprof_call_records_handles(CUpti_CallbackDomain domain);
/* Record no calls of the driver that launch, if there is reason to believe that the runtime makes all of them. Not in a
 * callback of CUPTI's. Returns whether a later call may be of use. */
bool kprof_call_records_save(void);
