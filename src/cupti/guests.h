/* The contract of kprof with the library that is preloaded into programs that start unarmed: what another tool of the
 * process, a guest, such as torch.profiler, calls in place of CUPTI, which takes one subscriber alone. */
#pragma once

#include <cupti.h>

#include <stdatomic.h>
#include <stdint.h>

/* Each function is that of CUPTI without `cupti`, and returns what CUPTI's would. `enable_activity` and
 * `disable_activity` take nothing but the kind. */
typedef struct kprof_guests {
    CUptiResult (*cupti_subscribe)(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback,
                                   void *user); /* CUPTI's own. Whoever would call that of another copy is no guest */
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user);
    CUptiResult (*unsubscribe)(CUpti_SubscriberHandle subscriber);
    CUptiResult (*get_callback_state)(uint32_t *enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                      CUpti_CallbackId id);
    CUptiResult (*enable_callback)(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId id);
    CUptiResult (*enable_domain)(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain);
    CUptiResult (*enable_all_domains)(uint32_t enable, CUpti_SubscriberHandle subscriber);
    CUptiResult (*enable_activity)(CUpti_ActivityKind kind);
    CUptiResult (*disable_activity)(CUpti_ActivityKind kind);
} kprof_guests;

typedef _Atomic(const kprof_guests *) kprof_guests_slot;

/* The name under which the preloaded library exports its slot. */
#define KPROF_GUESTS_SLOT "kprof_guests_hooks"
