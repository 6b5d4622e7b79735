/* A library of its own, preloaded into programs that start unarmed. It stands before the functions of CUPTI that
 * torch.profiler and its like call, and hands them to kprof where kprof has the subscriber of that copy of CUPTI.
 * Elsewhere each function is CUPTI's. */
#include "cupti/guests.h"

#include <dlfcn.h>
#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED kprof_guests_slot kprof_guests_hooks;

/* Return the function that the caller would call without this library, NULL where there is none. A framework loads a
 * CUPTI of its own, where RTLD_NEXT does not look. */
static void *find(const char *name, const void *caller)
{
    void *next = dlsym(RTLD_NEXT, name), *library;
    Dl_info info;
    if (next || !dladdr(caller, &info) || !info.dli_fname)
        return next;
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    next = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return next;
}

/* kprof's functions, where the caller's CUPTI is the copy that kprof uses. */
static const kprof_guests *host_of(const void *caller)
{
    const kprof_guests *host = atomic_load(&kprof_guests_hooks);
    return host && find("cuptiSubscribe", caller) == (void *)(uintptr_t)host->cupti_subscribe ? host : NULL;
}

/* The function `ours` of kprof for guests, or else CUPTI's `name`, is called with the arguments that follow. */
#define PASS(ours, name, ...)                                                                                          \
    const void *caller = __builtin_return_address(0);                                                                  \
    const kprof_guests *host = host_of(caller);                                                                        \
    __typeof__(&(name)) next = host ? host->ours : (__typeof__(&(name)))(uintptr_t)find(#name, caller);                \
    return next ? next(__VA_ARGS__) : CUPTI_ERROR_NOT_INITIALIZED

EXPORTED CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
    PASS(subscribe, cuptiSubscribe, out, callback, user);
}

EXPORTED CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    PASS(unsubscribe, cuptiUnsubscribe, subscriber);
}

EXPORTED CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    PASS(get_callback_state, cuptiGetCallbackState, enable, subscriber, domain, id);
}

EXPORTED CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    PASS(enable_callback, cuptiEnableCallback, enable, subscriber, domain, id);
}

EXPORTED CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
    PASS(enable_domain, cuptiEnableDomain, enable, subscriber, domain);
}

EXPORTED CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    PASS(enable_all_domains, cuptiEnableAllDomains, enable, subscriber);
}

EXPORTED CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    PASS(enable_activity, cuptiActivityEnable, kind);
}

EXPORTED CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    PASS(disable_activity, cuptiActivityDisable, kind);
}

/* kprof would end with it, too. */
EXPORTED CUptiResult cuptiFinalize(void)
{
    const void *caller = __builtin_return_address(0);
    CUptiResult (*next)(void) = (CUptiResult(*)(void))(uintptr_t)find("cuptiFinalize", caller);
    if (host_of(caller))
        return CUPTI_ERROR_NOT_SUPPORTED;
    return next ? next() : CUPTI_ERROR_NOT_INITIALIZED;
}
