/* At most one context has early samples: a device's counters serve one at a time. */
#include "inject/early.h"

#include "core/log.h"
#include "inject/devices.h"
#include "inject/engine.h"
#include "inject/idle.h"
#include "inject/lock.h"
#include "inject/process.h"
#include "inject/wait.h"

#include <stdatomic.h>

static struct {
    _Atomic(void *) wanted; /* the context, until samples are enabled there or nobody wants them any more */
    void *context;
    _Atomic(kprof_pc_samples *) samples; /* NULL: not enabled */
} early;

void kprof_early_note(void *context)
{
    if (kprof_engine.process.config.samples && !early.context) {
        early.context = context;
        atomic_store(&early.wanted, context);
    }
}

bool kprof_early_is_wanted(const void *context)
{
    return context && atomic_load_explicit(&early.wanted, memory_order_relaxed) == context;
}

bool kprof_early_is_there(void)
{
    return atomic_load(&early.samples) != NULL;
}

/* The first measurement reports a failure, as it enables them again. */
static bool enable(void)
{
    const kprof_device_ops *device = kprof_engine.device;
    const size_t buffer_bytes = (size_t)kprof_engine.process.config.sampling_buffer_bytes;
    const uint32_t period = (uint32_t)kprof_engine.process.config.sampling_period;
    kprof_pc_samples *samples = NULL;
    kprof_status status = device->pc_samples_open(early.context, buffer_bytes, &samples);
    KPROF_THEN(status, device->pc_samples_arm(samples, period ? period : KPROF_FIRST_PERIOD));
    if (status == KPROF_OK) {
        atomic_store(&early.samples, samples);
        return true;
    }
    kprof_log(KPROF_LOG_DEBUG, "samples cannot be enabled early: %s", kprof_process_reason(status));
    device->pc_samples_close(samples);
    return false;
}

void kprof_early_begin(void)
{
    if (!atomic_exchange(&early.wanted, NULL))
        return;
    bool entered = kprof_engine.device->target_enter_context(early.context);
    const kprof_device *device = kprof_devices_find(early.context);
    kprof_lock_choose(device ? device->record.uuid : "");
    /* If work is under way, it is too late: its kernels have been loaded. */
    if (kprof_wait_is_idle(kprof_wait_for_context(early.context)) && kprof_lock_take(0, NULL) && enable())
        kprof_idle_watch(); /* which looks for processes that wait */
    else
        kprof_lock_give();
    if (entered)
        kprof_engine.device->target_leave_context();
}

kprof_pc_samples *kprof_early_take(const void *context)
{
    return early.context == context ? atomic_exchange(&early.samples, NULL) : NULL;
}

static void disable(void)
{
    kprof_pc_samples *samples = atomic_exchange(&early.samples, NULL);
    if (!samples)
        return;
    bool entered = kprof_engine.device->target_enter_context(early.context);
    if (kprof_engine.device->pc_samples_disarm(samples) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples that were enabled early cannot be disabled");
    kprof_engine.device->pc_samples_close(samples);
    if (entered)
        kprof_engine.device->target_leave_context();
}

/* When samples of a context are disabled, CUPTI waits for its work without a limit. */
void kprof_early_end(void)
{
    if (kprof_early_is_there() && kprof_wait_is_idle(kprof_wait_for_context(early.context)))
        disable();
}

void kprof_early_leave_to(const void *context)
{
    atomic_store(&early.wanted, NULL);
    if (early.context != context)
        kprof_early_end();
}

void kprof_early_yield(void)
{
    if (!kprof_early_is_there())
        return;
    kprof_early_end();
    if (!kprof_early_is_there())
        kprof_lock_give();
}

void kprof_early_forget(const void *context)
{
    if (early.context != context)
        return;
    atomic_store(&early.wanted, NULL);
    disable();
    early.context = NULL;
}
