/* Recognizes the control calls by what they write, whichever registers these are: bits that one call sets and the next
 * one clears. Any other call to a profiler object finds the counters as the driver believes them to be. */
#include "cupti/counting.h"

#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/registers.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum switching { NO_SWITCH, SWITCH_ON, SWITCH_OFF } switching;

static kprof_ioctl_slot *slot; /* NULL: there is none */

/* The hook is set while one of these holds. */
static struct {
    atomic_bool keeps, programs;
} wanted;

/* `keeper` is the thread that keeps counters on, 0 where none does. No other thread touches the rest. */
static struct {
    atomic_ulong keeper;
    bool on;             /* the last call switched on */
    bool owes_off;       /* the one that would have switched off again was left out: it is `off` */
    unsigned count;      /* of calls left out */
    kprof_kept_call off; /* or the one that switched on */
} kept;

static switching kind_of(const kprof_register_ops *written)
{
    size_t sets = 0, clears = 0;
    for (uint32_t i = 0; i < written->count; i++) {
        const kprof_register_op *op = &written->ops[i];
        if (op->operation != KPROF_WRITE_32 || op->mask_low == 0)
            return NO_SWITCH;
        sets += op->value_low == op->mask_low;
        clears += op->value_low == 0;
    }
    if (written->count == 0)
        return NO_SWITCH;
    return sets == written->count ? SWITCH_ON : clears == written->count ? SWITCH_OFF : NO_SWITCH;
}

/* Do both write the same bits of the same registers, through the same object? */
static bool are_same(const kprof_control_call *call, const kprof_register_ops *written)
{
    const kprof_register_ops *before = &kept.off.ops;
    if (call->client != kept.off.control.client || call->object != kept.off.control.object ||
        written->count != before->count || written->mode != before->mode)
        return false;
    for (uint32_t i = 0; i < written->count; i++) {
        kprof_register_op a = written->ops[i], b = before->ops[i];
        a.status = b.status = 0;
        a.value_low = b.value_low = 0;
        if (memcmp(&a, &b, sizeof a) != 0)
            return false;
    }
    return true;
}

static void switch_off(void)
{
    kprof_ioctl_call *call = &kept.off.call;
    call->result = 0;
    kept.off.control.status = 0;
    do
        if (kept.owes_off)
            kprof_registers_make(call);
    while (call->result != 0 && errno == EINTR); /* a signal comes for the application */
    if (call->result != 0 || kept.off.control.status != 0)
        kprof_log(KPROF_LOG_DEBUG, "the counters of the SMs could not be switched off");
    kept.owes_off = kept.on = false;
}

/* Make the call. Leave it out if it switches off what the next one will switch on again, or switches that on again. */
static void switch_or_make(kprof_ioctl_call *call)
{
    const kprof_control_call *control = call->argument;
    const kprof_register_ops *written = kprof_register_ops_of(control);
    const switching kind = written ? kind_of(written) : NO_SWITCH;
    if (kept.on && kind == (kept.owes_off ? SWITCH_ON : SWITCH_OFF) && are_same(control, written)) {
        kprof_register_call_answer(call, kept.off.ops.passed);
        kept.count++;
        if (kind == SWITCH_OFF)
            kprof_kept_call_take(&kept.off, call);
        kept.owes_off = kind == SWITCH_OFF;
        return;
    }
    switch_off();
    kprof_registers_make(call);
    kept.on = kind == SWITCH_ON && call->result == 0 && control->status == 0 &&
              KPROF_ALL(i, written->count, written->ops[i].status == 0);
    if (kept.on)
        kprof_kept_call_take(&kept.off, call);
}

static bool take_call(kprof_ioctl_call *call)
{
    const bool is_control = (uint32_t)call->request == KPROF_CONTROL_REQUEST;
    if (!is_control || ((kprof_control_call *)call->argument)->command >> 16 != KPROF_PROFILER_CLASS) {
        kprof_registers_write();
        return false;
    }
    if (atomic_load(&kept.keeper) == (unsigned long)pthread_self())
        switch_or_make(call);
    else if (atomic_load(&wanted.programs))
        kprof_registers_make(call);
    else
        return false;
    return true;
}

static void set_hook(void)
{
    if (slot)
        atomic_store(slot, atomic_load(&wanted.keeps) || atomic_load(&wanted.programs) ? take_call : NULL);
}

void kprof_counting_find(void)
{
    slot = dlsym(RTLD_DEFAULT, KPROF_IOCTL_SLOT);
}

void kprof_counting_keep(bool keeps)
{
    if (!slot)
        return;
    if (keeps) {
        kept.on = kept.owes_off = false;
        kept.count = 0;
        atomic_store(&kept.keeper, (unsigned long)pthread_self());
    }
    atomic_store(&wanted.keeps, keeps);
    set_hook();
    if (keeps)
        return;
    switch_off();
    atomic_store(&kept.keeper, 0);
    if (kept.count > 0)
        kprof_log(KPROF_LOG_DEBUG, "%u control calls of the driver were left out in the pass", kept.count);
}

void kprof_counting_program(void)
{
    if (!slot)
        return;
    kprof_registers_begin();
    atomic_store(&wanted.programs, true);
    set_hook();
}

bool kprof_counting_programmed(void)
{
    return !slot || kprof_registers_end();
}

void kprof_counting_release(void)
{
    if (!atomic_exchange(&wanted.programs, false))
        return;
    set_hook();
    kprof_registers_forget();
}

void kprof_counting_forget(void)
{
    atomic_store(&wanted.keeps, false);
    atomic_store(&wanted.programs, false);
    set_hook();
    kprof_registers_forget_forked();
    atomic_store(&kept.keeper, 0);
    kept.on = kept.owes_off = false;
}
