/* CUPTI tells of a call or event if kprof or the guest wants that; each has a bit for it. */
#include "cupti/subscriber.h"

#include "core/hold.h"
#include "core/log.h"
#include "cupti/guests.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define WORD_BITS 64
#define MOST_IDS  1024 /* in a domain; the driver has most, about 800 */
#define WORDS     (MOST_IDS / WORD_BITS)

#define MOST_NESTED 16 /* calls of a thread that the guest is told of */

typedef struct wishes {
    _Atomic uint64_t words[CUPTI_CB_DOMAIN_SIZE][WORDS];
} wishes;

typedef struct kept_value {
    CUpti_CallbackDomain domain;
    uint32_t correlation;
    uint64_t value;
} kept_value;

/* The lock is for those who change what is wanted, and for the guest's coming and going. */
static struct {
    const kprof_cupti_api *cupti;
    CUpti_SubscriberHandle handle;
    wishes kprofs, guests;
    _Atomic(CUpti_CallbackFunc) guest;
    void *guest_user;
    pthread_mutex_t lock;
    _Atomic uint64_t recorded; /* kinds of activities that the guest records */
    bool is_closed;
} subscriber = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_known(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return (size_t)domain < CUPTI_CB_DOMAIN_SIZE && id < MOST_IDS;
}

static bool wants(const wishes *of, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    return atomic_load_explicit(&of->words[domain][id / WORD_BITS], memory_order_relaxed) >> id % WORD_BITS & 1;
}

static void note(wishes *of, bool wanted, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    const uint64_t bit = UINT64_C(1) << id % WORD_BITS;
    if (wanted)
        atomic_fetch_or(&of->words[domain][id / WORD_BITS], bit);
    else
        atomic_fetch_and(&of->words[domain][id / WORD_BITS], ~bit);
}

/* Frameworks let go of CUPTI as a forked child ends, too, and another thread may have had the lock. */
static void begin_anew_in_child(void)
{
    pthread_mutex_init(&subscriber.lock, NULL);
}

CUptiResult kprof_subscriber_start(const kprof_cupti_api *cupti, CUpti_CallbackFunc callback)
{
    subscriber.cupti = cupti;
    pthread_atfork(NULL, NULL, begin_anew_in_child);
    return cupti->cuptiSubscribe(&subscriber.handle, callback, NULL);
}

/* With the lock. What the other one wants stays on. */
static CUptiResult follow(wishes *of, bool wanted, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    const wishes *others = of == &subscriber.kprofs ? &subscriber.guests : &subscriber.kprofs;
    CUptiResult result = CUPTI_SUCCESS;
    if (!is_known(domain, id))
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!wants(others, domain, id))
        result = subscriber.cupti->cuptiEnableCallback(wanted, subscriber.handle, domain, id);
    if (result == CUPTI_SUCCESS)
        note(of, wanted, domain, id);
    return result;
}

CUptiResult kprof_subscriber_follow(bool wanted, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    KPROF_HOLD(subscriber.lock);
    return follow(&subscriber.kprofs, wanted, domain, id);
}

static CUptiResult follow_all(wishes *of, CUpti_CallbackDomain domain)
{
    if ((size_t)domain >= CUPTI_CB_DOMAIN_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    CUptiResult result = subscriber.cupti->cuptiEnableDomain(1, subscriber.handle, domain);
    for (size_t i = 0; result == CUPTI_SUCCESS && i < WORDS; i++)
        atomic_store(&of->words[domain][i], ~UINT64_C(0));
    return result;
}

CUptiResult kprof_subscriber_follow_all(CUpti_CallbackDomain domain)
{
    KPROF_HOLD(subscriber.lock);
    return follow_all(&subscriber.kprofs, domain);
}

static size_t find_kept(const kept_value *kept, CUpti_CallbackDomain domain, uint32_t correlation)
{
    return KPROF_FIND(i, MOST_NESTED, kept[i].domain == domain && kept[i].correlation == correlation);
}

/* CUPTI lets a tool keep one number while a call is under way, and kprof takes that. So the guest gets another one. */
static void tell_of_call(CUpti_CallbackFunc guest, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                         const CUpti_CallbackData *data)
{
    static __thread kept_value kept[MOST_NESTED + 1]; /* the last one: for calls that were not reported on entering */
    CUpti_CallbackData call = *data;
    size_t i = find_kept(kept, domain, data->correlationId);
    if (i == MOST_NESTED && data->callbackSite == CUPTI_API_ENTER)
        i = find_kept(kept, CUPTI_CB_DOMAIN_INVALID, 0);
    if (i == MOST_NESTED && data->callbackSite == CUPTI_API_ENTER) { /* the guest was not told that calls left */
        memset(kept, 0, sizeof kept);
        i = 0;
    }
    if (data->callbackSite == CUPTI_API_ENTER)
        kept[i] = (kept_value){domain, data->correlationId, 0};
    call.correlationData = &kept[i].value;
    guest(subscriber.guest_user, domain, id, &call);
    if (data->callbackSite == CUPTI_API_EXIT)
        kept[i] = (kept_value){CUPTI_CB_DOMAIN_INVALID, 0, 0};
}

bool kprof_subscriber_route(bool is_kprofs, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    CUpti_CallbackFunc guest = atomic_load_explicit(&subscriber.guest, memory_order_acquire);
    if (!guest || !is_known(domain, id))
        return true;
    const bool is_told = !is_kprofs && wants(&subscriber.guests, domain, id);
    if (is_told && (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API))
        tell_of_call(guest, domain, id, data);
    else if (is_told)
        guest(subscriber.guest_user, domain, id, data);
    return wants(&subscriber.kprofs, domain, id);
}

/* The guest's side */

static CUpti_SubscriberHandle guest_handle(void)
{
    return (CUpti_SubscriberHandle)(void *)&subscriber.guests;
}

static CUptiResult subscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user)
{
    CUptiResult result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!out || !callback)
        return CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&subscriber.lock);
    if (!subscriber.is_closed && !atomic_load(&subscriber.guest)) {
        subscriber.guest_user = user;
        atomic_store_explicit(&subscriber.guest, callback, memory_order_release);
        *out = guest_handle();
        result = CUPTI_SUCCESS;
    }
    pthread_mutex_unlock(&subscriber.lock);
    kprof_log(KPROF_LOG_DEBUG, "another tool asks for CUPTI's subscriber: %s",
              result == CUPTI_SUCCESS ? "it is told what it asks for" : "kprof measures, or there is one already");
    return result;
}

/* With the lock. A domain that CUPTI does not have has no bits. */
static void leave_domain(CUpti_CallbackDomain domain)
{
    for (CUpti_CallbackId id = 0; id < MOST_IDS; id++)
        if (wants(&subscriber.guests, domain, id) && follow(&subscriber.guests, false, domain, id) != CUPTI_SUCCESS)
            note(&subscriber.guests, false, domain, id); /* CUPTI has no such call */
}

static CUptiResult unsubscribe(CUpti_SubscriberHandle handle)
{
    if (handle != guest_handle() || !atomic_load(&subscriber.guest))
        return CUPTI_ERROR_INVALID_PARAMETER;
    KPROF_HOLD(subscriber.lock);
    for (int domain = 0; domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        leave_domain((CUpti_CallbackDomain)domain);
    atomic_store(&subscriber.guest, NULL);
    return CUPTI_SUCCESS;
}

static CUptiResult get_callback_state(uint32_t *enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                      CUpti_CallbackId id)
{
    if (!enable || handle != guest_handle() || !is_known(domain, id))
        return CUPTI_ERROR_INVALID_PARAMETER;
    *enable = wants(&subscriber.guests, domain, id);
    return CUPTI_SUCCESS;
}

static CUptiResult enable_callback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId id)
{
    if (handle != guest_handle())
        return CUPTI_ERROR_INVALID_PARAMETER;
    KPROF_HOLD(subscriber.lock);
    return follow(&subscriber.guests, enable != 0, domain, id);
}

static CUptiResult enable_domain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    CUptiResult result = CUPTI_SUCCESS;
    if (handle != guest_handle() || (size_t)domain >= CUPTI_CB_DOMAIN_SIZE)
        return CUPTI_ERROR_INVALID_PARAMETER;
    KPROF_HOLD(subscriber.lock);
    if (enable)
        result = follow_all(&subscriber.guests, domain);
    else
        leave_domain(domain);
    return result;
}

static CUptiResult enable_all_domains(uint32_t enable, CUpti_SubscriberHandle handle)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (int domain = 1; result == CUPTI_SUCCESS && domain < CUPTI_CB_DOMAIN_SIZE; domain++)
        result = enable_domain(enable, handle, (CUpti_CallbackDomain)domain);
    return result;
}

static uint64_t bit_of(CUpti_ActivityKind kind)
{
    return UINT64_C(1) << (unsigned)kind % WORD_BITS;
}

/* Do not hold the lock while CUPTI enables: it may wait for a thread whose callback waits for the lock. */
static CUptiResult enable_activity(CUpti_ActivityKind kind)
{
    uint64_t before = 0;
    pthread_mutex_lock(&subscriber.lock);
    const bool is_closed = subscriber.is_closed;
    if (!is_closed)
        before = atomic_fetch_or(&subscriber.recorded, bit_of(kind));
    pthread_mutex_unlock(&subscriber.lock);
    if (is_closed)
        return CUPTI_ERROR_NOT_COMPATIBLE;
    CUptiResult result = subscriber.cupti->cuptiActivityEnable(kind);
    if (result != CUPTI_SUCCESS && !(before & bit_of(kind)))
        atomic_fetch_and(&subscriber.recorded, ~bit_of(kind));
    return result;
}

static CUptiResult disable_activity(CUpti_ActivityKind kind)
{
    CUptiResult result = subscriber.cupti->cuptiActivityDisable(kind);
    atomic_fetch_and(&subscriber.recorded, ~bit_of(kind));
    return result;
}

void kprof_subscriber_take_guests(void)
{
    static kprof_guests guests = {
        .subscribe = subscribe,
        .unsubscribe = unsubscribe,
        .get_callback_state = get_callback_state,
        .enable_callback = enable_callback,
        .enable_domain = enable_domain,
        .enable_all_domains = enable_all_domains,
        .enable_activity = enable_activity,
        .disable_activity = disable_activity,
    };
    kprof_guests_slot *slot = (kprof_guests_slot *)dlsym(RTLD_DEFAULT, KPROF_GUESTS_SLOT);
    guests.cupti_subscribe = subscriber.cupti->cuptiSubscribe;
    if (slot)
        atomic_store(slot, &guests);
}

bool kprof_subscriber_close(void)
{
    KPROF_HOLD(subscriber.lock);
    const bool closes = atomic_load(&subscriber.recorded) == 0;
    subscriber.is_closed = closes;
    return closes;
}

void kprof_subscriber_open(void)
{
    KPROF_HOLD(subscriber.lock);
    subscriber.is_closed = false;
}
