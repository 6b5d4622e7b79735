/* One subscriber of CUPTI's for two: what CUPTI is to tell, who is told, and when a guest may come or record. This
 * program has the slot of the preloaded library. */
#include "cupti/guests.h"
#include "cupti/subscriber.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDS = 1000, LAUNCH = 307, MODULE = CUPTI_CBID_RESOURCE_MODULE_LOADED };

__attribute__((visibility("default"))) kprof_guests_slot kprof_guests_hooks;

static char handle;
static bool is_on[CUPTI_CB_DOMAIN_SIZE][IDS];
static CUpti_ActivityKind enabled, disabled;
static CUptiResult activity_result;
static atomic_bool is_held, holds; /* CUPTI does not come back from changing what it tells of */
static bool loads;                 /* code, as CUPTI enables or disables activities */
static unsigned told;
static CUpti_CallbackId told_id;
static uint64_t kprofs_value; /* which kprof keeps for a call */
static CUpti_CallbackData call = {.correlationData = &kprofs_value, .correlationId = 1};

static CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
    *out = (CUpti_SubscriberHandle)(void *)&handle;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI enable_callback(uint32_t on, CUpti_SubscriberHandle of, CUpti_CallbackDomain domain,
                                            CUpti_CallbackId id)
{
    assert_ptr_equal(of, &handle);
    if (id >= IDS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    while (atomic_load(&holds))
        atomic_store(&is_held, true);
    is_on[domain][id] = on;
    return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI enable_domain(uint32_t on, CUpti_SubscriberHandle of, CUpti_CallbackDomain domain)
{
    assert_ptr_equal(of, &handle);
    memset(is_on[domain], (int)on, sizeof is_on[domain]);
    return CUPTI_SUCCESS;
}

/* In another thread, for which CUPTI may wait, a callback has kprof follow a call. */
static void load(void)
{
    if (loads)
        assert_int_equal(kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH), CUPTI_SUCCESS);
}

static CUptiResult CUPTIAPI enable_activity(CUpti_ActivityKind kind)
{
    enabled = kind;
    load();
    return activity_result;
}

static CUptiResult CUPTIAPI disable_activity(CUpti_ActivityKind kind)
{
    disabled = kind;
    load();
    return CUPTI_SUCCESS;
}

static void CUPTIAPI on_kprofs(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {}

/* A guest keeps a number, or a pointer, from the entering of a call to its leaving. */
static void CUPTIAPI on_guests(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    const CUpti_CallbackData *of_call = data;
    ++*(unsigned *)user;
    told_id = id;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API)
        return;
    if (of_call->callbackSite == CUPTI_API_ENTER)
        *of_call->correlationData = 1000 + of_call->correlationId;
    else
        assert_int_equal(*of_call->correlationData, 1000 + of_call->correlationId);
}

static const kprof_guests *guests(void)
{
    return atomic_load(&kprof_guests_hooks);
}

static CUpti_SubscriberHandle guest;

static int set_up(void **state)
{
    static const kprof_cupti_api cupti = {.cuptiSubscribe = subscribe,
                                          .cuptiEnableCallback = enable_callback,
                                          .cuptiEnableDomain = enable_domain,
                                          .cuptiActivityEnable = enable_activity,
                                          .cuptiActivityDisable = disable_activity};
    memset(is_on, 0, sizeof is_on);
    told = 0;
    kprof_subscriber_open();
    assert_int_equal(kprof_subscriber_start(&cupti, on_kprofs), CUPTI_SUCCESS);
    assert_int_equal(kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, MODULE), CUPTI_SUCCESS);
    kprof_subscriber_take_guests();
    assert_non_null(guests());
    assert_ptr_equal(guests()->cupti_subscribe, subscribe);
    return guests()->subscribe(&guest, on_guests, &told) == CUPTI_SUCCESS ? 0 : -1;
}

static int tear_down(void **state)
{
    return guests()->unsubscribe(guest) == CUPTI_SUCCESS ? 0 : -1;
}

static bool route(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return kprof_subscriber_route(false, domain, id, &call);
}

TEST(test_each_is_told_what_it_asks_for)
{
    uint32_t on = 7;
    assert_true(route(CUPTI_CB_DOMAIN_RESOURCE, MODULE));
    assert_int_equal(told, 0);
    assert_int_equal(guests()->enable_callback(1, guest, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH]);
    assert_int_equal(guests()->get_callback_state(&on, guest, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH), CUPTI_SUCCESS);
    assert_int_equal(on, 1);
    assert_false(route(CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH));
    assert_int_equal(told, 1);
    assert_int_equal(told_id, LAUNCH);
    assert_true(kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH) == CUPTI_SUCCESS);
    assert_true(route(CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH));
    assert_int_equal(told, 2);
    assert_true(kprof_subscriber_route(true, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH, &call)); /* a call of kprof's */
    assert_int_equal(told, 2);
}

static void tell_of(uint32_t correlation, CUpti_ApiCallbackSite site)
{
    call.correlationId = correlation;
    call.callbackSite = site;
    assert_true(route(CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH));
    if (site == CUPTI_API_ENTER)
        kprofs_value = correlation;
}

/* Of calls within calls, too. */
TEST(test_each_keeps_its_own_of_a_call)
{
    assert_int_equal(guests()->enable_callback(1, guest, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH), CUPTI_SUCCESS);
    assert_true(kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH) == CUPTI_SUCCESS);
    tell_of(1, CUPTI_API_ENTER);
    for (uint32_t i = 2; i < 40; i += 2) {
        tell_of(i, CUPTI_API_ENTER);
        tell_of(i + 1, CUPTI_API_ENTER);
        tell_of(i + 1, CUPTI_API_EXIT);
        assert_int_equal(kprofs_value, i + 1);
        tell_of(i, CUPTI_API_EXIT);
    }
    tell_of(1, CUPTI_API_EXIT);
    for (uint32_t i = 40; i < 60; i++)
        tell_of(i, CUPTI_API_ENTER); /* and no more of these */
    tell_of(60, CUPTI_API_ENTER);
    tell_of(60, CUPTI_API_EXIT);
    call.callbackSite = CUPTI_API_ENTER;
    assert_int_equal(told, 100);
}

TEST(test_neither_takes_from_the_other)
{
    assert_int_equal(guests()->enable_domain(1, guest, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
    assert_int_equal(kprof_subscriber_follow(false, CUPTI_CB_DOMAIN_RESOURCE, MODULE), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_RESOURCE][MODULE]);
    assert_false(route(CUPTI_CB_DOMAIN_RESOURCE, MODULE));
    assert_int_equal(kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_RESOURCE, MODULE), CUPTI_SUCCESS);
    assert_int_equal(guests()->enable_domain(0, guest, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_RESOURCE][MODULE]);
    assert_false(is_on[CUPTI_CB_DOMAIN_RESOURCE][MODULE + 1]);
    assert_int_equal(guests()->enable_all_domains(1, guest), CUPTI_SUCCESS);
    assert_int_equal(kprof_subscriber_follow_all(CUPTI_CB_DOMAIN_DRIVER_API), CUPTI_SUCCESS);
    assert_int_equal(kprof_subscriber_follow(false, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH]);
    assert_int_equal(guests()->enable_callback(0, guest, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH + 1), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH + 1]);
    assert_int_equal(guests()->unsubscribe(guest), CUPTI_SUCCESS);
    assert_false(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH]);
    assert_true(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH + 1]);
    assert_false(is_on[CUPTI_CB_DOMAIN_RUNTIME_API][1]);
    assert_true(route(CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH)); /* what CUPTI tells is kprof's again */
    assert_int_equal(guests()->subscribe(&guest, on_guests, &told), CUPTI_SUCCESS);
}

TEST(test_while_kprof_measures)
{
    CUpti_SubscriberHandle other = NULL;
    assert_int_equal(guests()->subscribe(&other, on_guests, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_int_equal(guests()->unsubscribe(guest), CUPTI_SUCCESS);
    assert_true(kprof_subscriber_close());
    assert_int_equal(guests()->subscribe(&other, on_guests, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_null(other);
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_ERROR_NOT_COMPATIBLE);
    assert_int_equal(enabled, CUPTI_ACTIVITY_KIND_INVALID);
    kprof_subscriber_open();
    assert_int_equal(guests()->subscribe(&guest, on_guests, &told), CUPTI_SUCCESS);
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    assert_int_equal(enabled, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    assert_false(kprof_subscriber_close());
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    assert_int_equal(guests()->disable_activity(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
    assert_int_equal(disabled, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    assert_false(kprof_subscriber_close());
    assert_int_equal(guests()->disable_activity(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    assert_true(kprof_subscriber_close());
}

TEST(test_code_comes_while_activities_change)
{
    loads = true;
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    assert_true(is_on[CUPTI_CB_DOMAIN_DRIVER_API][LAUNCH]);
    assert_int_equal(guests()->disable_activity(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
    loads = false;
}

static void *follow_in_thread(void *unused)
{
    (void)kprof_subscriber_follow(true, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCH);
    return unused;
}

TEST(test_guest_of_a_forked_child)
{
    pthread_t thread;
    int status = -1;
    atomic_store(&holds, true);
    assert_int_equal(pthread_create(&thread, NULL, follow_in_thread, NULL), 0);
    while (!atomic_load(&is_held))
        sched_yield();
    const pid_t child = fork();
    if (child == 0) {
        atomic_store(&holds, false);
        _exit(guests()->unsubscribe(guest) == CUPTI_SUCCESS ? 0 : 1);
    }
    atomic_store(&holds, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(test_refused_activity)
{
    activity_result = CUPTI_ERROR_NOT_COMPATIBLE;
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_NOT_COMPATIBLE);
    assert_true(kprof_subscriber_close());
    kprof_subscriber_open();
    activity_result = CUPTI_SUCCESS;
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
    activity_result = CUPTI_ERROR_NOT_COMPATIBLE; /* it is recorded all the same */
    assert_int_equal(guests()->enable_activity(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_NOT_COMPATIBLE);
    assert_false(kprof_subscriber_close());
    activity_result = CUPTI_SUCCESS;
    assert_int_equal(guests()->disable_activity(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
    assert_true(kprof_subscriber_close());
}

TEST(test_mistakes)
{
    uint32_t on;
    const CUpti_SubscriberHandle stranger = (CUpti_SubscriberHandle)(void *)&on;
    const kprof_guests *of = guests();
    assert_int_equal(of->subscribe(NULL, on_guests, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->unsubscribe(stranger), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->get_callback_state(&on, stranger, CUPTI_CB_DOMAIN_RESOURCE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->get_callback_state(&on, guest, CUPTI_CB_DOMAIN_SIZE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_callback(1, stranger, CUPTI_CB_DOMAIN_RESOURCE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_callback(1, guest, CUPTI_CB_DOMAIN_SIZE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_callback(1, guest, CUPTI_CB_DOMAIN_RESOURCE, 1 << 20), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_domain(1, stranger, CUPTI_CB_DOMAIN_RESOURCE), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_domain(1, guest, CUPTI_CB_DOMAIN_SIZE), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(of->enable_all_domains(1, stranger), CUPTI_ERROR_INVALID_PARAMETER);
}

AROUND_EACH(set_up, tear_down)
