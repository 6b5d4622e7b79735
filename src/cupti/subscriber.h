/* CUPTI's one subscriber, which kprof is. While kprof is not armed another tool of the process may be a guest: it is
 * told what it asks for, and may record activities. */
#pragma once

#include "host/load.h"

#include <stdbool.h>

/* Become CUPTI's subscriber. `cupti` must last. */
CUptiResult kprof_subscriber_start(const kprof_cupti_api *cupti, CUpti_CallbackFunc callback);

/* Have CUPTI tell kprof of a call or an event, or no longer. */
CUptiResult kprof_subscriber_follow(bool follow, CUpti_CallbackDomain domain, CUpti_CallbackId id);

/* Have CUPTI tell kprof of all in the domain. */
CUptiResult kprof_subscriber_follow_all(CUpti_CallbackDomain domain);

/* Let guests in, where the preloaded library is. */
void kprof_subscriber_take_guests(void);

/* Tell a guest that asked for it, if the call is the application's. Returns whether kprof asked for it. */
bool kprof_subscriber_route(bool is_kprofs, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data);

/* Until kprof_subscriber_open no guest may subscribe or begin to record. False: a guest records now, and still may. */
bool kprof_subscriber_close(void);
void kprof_subscriber_open(void);
