/* CUPTI tells of launches for a while. A module loaded lazily comes within the launch that wants it, which CUPTI may
 * not tell of any more: then the next launch of its kernels is looked at. */
#include "cupti/peeks.h"

#include "core/hold.h"
#include "core/log.h"
#include "cupti/calls.h"
#include "cupti/modules.h"
#include "cupti/subscriber.h"

#include <pthread.h>
#include <stdatomic.h>

/* Look at this many launches at most for modules: a loaded kernel may never be launched. */
#define MOST_LAUNCHES 4096

static struct {
    pthread_mutex_t lock; /* for those that turn it on or off */
    bool is_allowed;
    atomic_bool runs;
    atomic_uint left; /* launches */
} peeks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock. */
static void turn(bool on)
{
    CUptiResult result = CUPTI_SUCCESS;
    atomic_store(&peeks.runs, on);
    for (CUpti_CallbackId id = 1; result == CUPTI_SUCCESS && id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        if (kprof_call_launches(id))
            result = kprof_subscriber_follow(on, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (result != CUPTI_SUCCESS)
        kprof_log(KPROF_LOG_DEBUG, "CUPTI does not tell of single launches (CUPTI error %d)", (int)result);
}

void kprof_peeks_allow(bool allow)
{
    KPROF_HOLD(peeks.lock);
    peeks.is_allowed = allow;
    if (!allow)
        atomic_store(&peeks.runs, false);
}

void kprof_peeks_begin(void)
{
    KPROF_HOLD(peeks.lock);
    if (peeks.is_allowed && kprof_modules_count_unnoted(NULL) > 0) {
        atomic_store(&peeks.left, MOST_LAUNCHES);
        if (!atomic_load(&peeks.runs))
            turn(true);
    }
}

static void end(void)
{
    KPROF_HOLD(peeks.lock);
    if (atomic_load(&peeks.runs))
        turn(false);
}

bool kprof_peeks_run(void)
{
    return atomic_load_explicit(&peeks.runs, memory_order_relaxed);
}

bool kprof_peeks_want(const kprof_call *call)
{
    unsigned left = atomic_load(&peeks.left);
    while (left > 0 && !atomic_compare_exchange_weak(&peeks.left, &left, left - 1))
        continue;
    if (left <= 1)
        end();
    return left > 0 && !call->failed && kprof_modules_count_unnoted(call->kernel_name) > 0;
}

void kprof_peeks_settle(void)
{
    if (kprof_modules_count_unnoted(NULL) == 0)
        end();
}
