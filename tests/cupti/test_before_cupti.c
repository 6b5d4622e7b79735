/* The preloaded library between a framework and its copy of CUPTI, both loaded for themselves as Python does it: the
 * copy is called where kprof uses another one or none, and kprof where it uses this one. */
#include "cupti/guests.h"
#include "test.h"

#include <dlfcn.h>
#include <string.h>

static int (*call_cupti)(int, void *);
static CUptiResult (*own_subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
static kprof_guests_slot *slot;
static char handle;

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
    assert_ptr_equal(user, &handle);
    return (CUptiResult)1;
}

static CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber)
{
    assert_ptr_equal(subscriber, &handle);
    return (CUptiResult)2;
}

static CUptiResult get_callback_state(uint32_t *enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                      CUpti_CallbackId id)
{
    assert_non_null(enable);
    assert_ptr_equal(subscriber, &handle);
    return (CUptiResult)(3 + domain + id);
}

static CUptiResult enable_callback(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId id)
{
    assert_ptr_equal(subscriber, &handle);
    return (CUptiResult)(4 + enable + domain + id);
}

static CUptiResult enable_domain(uint32_t enable, CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
    assert_ptr_equal(subscriber, &handle);
    return (CUptiResult)(5 + enable + domain);
}

static CUptiResult enable_all_domains(uint32_t enable, CUpti_SubscriberHandle subscriber)
{
    assert_ptr_equal(subscriber, &handle);
    return (CUptiResult)(6 + enable);
}

static CUptiResult enable_activity(CUpti_ActivityKind kind)
{
    return (CUptiResult)(7 + kind);
}

static CUptiResult disable_activity(CUpti_ActivityKind kind)
{
    return (CUptiResult)(8 + kind);
}

static int open_framework(void **state)
{
    void *framework = dlopen(FRAMEWORK, RTLD_NOW | RTLD_LOCAL), *function;
    assert_non_null(framework);
    assert_null(dlsym(RTLD_DEFAULT, "call_cupti"));
    function = dlsym(framework, "call_cupti");
    memcpy(&call_cupti, &function, sizeof call_cupti);
    function = dlsym(framework, "cuptiSubscribe");
    memcpy(&own_subscribe, &function, sizeof own_subscribe);
    slot = (kprof_guests_slot *)dlsym(RTLD_DEFAULT, KPROF_GUESTS_SLOT);
    return call_cupti && own_subscribe && slot ? 0 : -1;
}

static void expect(const int *results)
{
    for (int which = 0; results[which]; which++)
        assert_int_equal(call_cupti(which, &handle), results[which]);
}

TEST(test_calls)
{
    static const int of_copy[] = {101, 102, 103, 108, 204, 301, 401, 501, 104, 0};
    static const int of_kprof[] = {1, 2, 10, 12, 9, 7, 8, 9, CUPTI_ERROR_NOT_SUPPORTED, 0};
    static kprof_guests host = {.subscribe = subscribe,
                                .unsubscribe = unsubscribe,
                                .get_callback_state = get_callback_state,
                                .enable_callback = enable_callback,
                                .enable_domain = enable_domain,
                                .enable_all_domains = enable_all_domains,
                                .enable_activity = enable_activity,
                                .disable_activity = disable_activity};
    expect(of_copy);
    host.cupti_subscribe = subscribe; /* another copy */
    atomic_store(slot, &host);
    expect(of_copy);
    atomic_store(slot, NULL);
    host.cupti_subscribe = own_subscribe;
    atomic_store(slot, &host);
    expect(of_kprof);
    atomic_store(slot, NULL);
    expect(of_copy);
}

AROUND_EACH(open_framework, NULL)
