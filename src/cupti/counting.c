/* Recognizes the control calls by what they write, whichever registers these are: bits that one call sets and the next
 * one clears. Any other call to a profiler object finds the counters as the driver believes them to be. */
#include "cupti/counting.h"

#include "core/log.h"
#include "core/strbuf.h"
#include "cupti/control_call.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* As NVIDIA's open kernel modules have them: ctrlb0ccprofiler.h, ctrl2080gpu.h. */
#define PROFILER_CLASS 0xb0ccU
#define EXEC_REG_OPS   0xb0cc010aU
#define WRITE_32       1
#define MOST_OPS       124

typedef struct register_op {
    uint8_t operation, type, status, quad;
    uint32_t group_mask, subgroup_mask, offset, value_high, value_low, mask_high, mask_low;
} register_op;

typedef struct register_ops {
    uint32_t count, mode;
    uint8_t passed; /* all of them, as the kernel module answers in one of the modes */
    uint8_t direct, unused[2];
    register_op ops[MOST_OPS];
} register_ops;

_Static_assert(sizeof(register_ops) == 3980, "the driver's layout");

typedef enum switching { NO_SWITCH, SWITCH_ON, SWITCH_OFF } switching;

static kprof_ioctl_slot *slot; /* NULL: there is none */

/* `keeper` is the thread that keeps counters on, 0 where none does. No other thread touches the rest. */
static struct {
    atomic_ulong keeper;
    bool on;        /* the last call switched on */
    bool owes_off;  /* the one that would have switched off again was left out: it is `off` */
    unsigned count; /* of calls left out */
    kprof_ioctl_call off;
    kprof_control_call off_control;
    register_ops registers; /* of the call that switched on, or of `off` */
} kept;

static switching kind_of(const register_ops *written)
{
    size_t sets = 0, clears = 0;
    for (uint32_t i = 0; i < written->count && i < MOST_OPS; i++) {
        const register_op *op = &written->ops[i];
        if (op->operation != WRITE_32 || op->mask_low == 0)
            return NO_SWITCH;
        sets += op->value_low == op->mask_low;
        clears += op->value_low == 0;
    }
    if (written->count == 0)
        return NO_SWITCH;
    return sets == written->count ? SWITCH_ON : clears == written->count ? SWITCH_OFF : NO_SWITCH;
}

/* Do both write the same bits of the same registers, through the same object? */
static bool are_same(const kprof_control_call *call, const register_ops *written)
{
    const register_ops *before = &kept.registers;
    if (call->client != kept.off_control.client || call->object != kept.off_control.object ||
        written->count != before->count || written->mode != before->mode)
        return false;
    for (uint32_t i = 0; i < written->count; i++) {
        register_op a = written->ops[i], b = before->ops[i];
        a.status = b.status = 0;
        a.value_low = b.value_low = 0;
        if (memcmp(&a, &b, sizeof a) != 0)
            return false;
    }
    return true;
}

static bool all_written(const register_ops *written)
{
    return KPROF_ALL(i, written->count, written->ops[i].status == 0);
}

/* Answer as the driver's kernel module answered the call before, which succeeded. */
static void leave_out(kprof_control_call *control, register_ops *written, kprof_ioctl_call *call)
{
    for (uint32_t i = 0; i < written->count; i++)
        written->ops[i].status = 0;
    written->passed = kept.registers.passed;
    control->status = 0;
    call->result = 0;
    kept.count++;
}

static void keep_call(const kprof_ioctl_call *call, const kprof_control_call *control, const register_ops *written)
{
    kept.off = *call;
    kept.off_control = *control;
    kept.registers = *written;
    kept.off_control.parameters = (uintptr_t)&kept.registers;
    kept.off.argument = &kept.off_control;
}

static void switch_off(void)
{
    int result;
    kept.off_control.status = 0;
    do
        result = kept.owes_off ? kept.off.issue(kept.off.fd, kept.off.request, kept.off.argument) : 0;
    while (result != 0 && errno == EINTR); /* a signal comes for the application */
    if (result != 0 || kept.off_control.status != 0)
        kprof_log(KPROF_LOG_DEBUG, "the counters of the SMs could not be switched off");
    kept.owes_off = kept.on = false;
}

static bool take_call(kprof_ioctl_call *call)
{
    kprof_control_call *control = call->argument;
    if ((uint32_t)call->request != KPROF_CONTROL_REQUEST ||
        atomic_load(&kept.keeper) != (unsigned long)pthread_self() || control->command >> 16 != PROFILER_CLASS)
        return false;
    register_ops *written = (register_ops *)(uintptr_t)control->parameters;
    bool writes = control->command == EXEC_REG_OPS && written && control->parameter_bytes == sizeof(register_ops);
    switching kind = writes ? kind_of(written) : NO_SWITCH;
    if (kept.on && kind == (kept.owes_off ? SWITCH_ON : SWITCH_OFF) && are_same(control, written)) {
        leave_out(control, written, call);
        if (kind == SWITCH_OFF)
            keep_call(call, control, written);
        kept.owes_off = kind == SWITCH_OFF;
        return true;
    }
    switch_off();
    call->result = call->issue(call->fd, call->request, call->argument);
    kept.on = kind == SWITCH_ON && call->result == 0 && control->status == 0 && all_written(written);
    if (kept.on)
        keep_call(call, control, written);
    return true;
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
        atomic_store(slot, take_call);
        return;
    }
    atomic_store(slot, NULL);
    switch_off();
    atomic_store(&kept.keeper, 0);
    if (kept.count > 0)
        kprof_log(KPROF_LOG_DEBUG, "%u control calls of the driver were left out in the pass", kept.count);
}

void kprof_counting_forget(void)
{
    if (slot)
        atomic_store(slot, NULL);
    atomic_store(&kept.keeper, 0);
    kept.on = kept.owes_off = false;
}
