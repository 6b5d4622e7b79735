/* A register is known from a write. A write through another object, or another call, leaves none known. */
#include "cupti/registers.h"

#include "core/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The monitors of GPCs and of memory partitions on GH100; each has 512 bytes of registers. Leave out the registers of a
 * monitor that tell its state or hold what it recorded: the hardware changes them. */
#define FIRST_MONITOR 0x180000U
#define END_MONITORS  0x240000U
#define MONITOR_BYTES 0x200U
#define FIRST_STATE   0xc0U
#define END_STATE     0x108U

#define REGISTERS ((END_MONITORS - FIRST_MONITOR) / 4)
#define ALL_BITS  0xffffffffU
/* Reading and advancing the buffer of records: it changes no register of a monitor. */
#define BUFFER_GET_PUT 0xb0cc0109U

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* The thread whose pass starts or stops; 0: none. */
static atomic_ulong programmer;

/* Hold the turn. */
static struct {
    uint32_t client, object; /* through which the registers got their values */
    uint8_t passed;          /* as the kernel module last answered */
    bool failed;             /* since the beginning */
    kprof_kept_call waiting; /* its ops are to be written, if it has any */
    bool known[REGISTERS];
    uint32_t values[REGISTERS];
} file;

void kprof_kept_call_take(kprof_kept_call *out, const kprof_ioctl_call *call)
{
    out->call = *call;
    out->control = *(const kprof_control_call *)call->argument;
    out->ops = *kprof_register_ops_of(&out->control);
    out->call.argument = &out->control;
    out->control.parameters = (uintptr_t)&out->ops;
}

void kprof_register_call_answer(kprof_ioctl_call *call, uint8_t passed)
{
    kprof_control_call *control = call->argument;
    kprof_register_ops *ops = kprof_register_ops_of(control);
    for (uint32_t i = 0; i < ops->count; i++)
        ops->ops[i].status = 0;
    ops->passed = passed;
    control->status = 0;
    call->result = 0;
}

/* A handler of the application would wait for its own thread's turn if it called ioctl, and keep it if it jumped. */
static sigset_t take_turn(void)
{
    sigset_t before;
    kprof_handlers_block(&before);
    pthread_mutex_lock(&turn);
    return before;
}

static void give_turn(sigset_t before)
{
    pthread_mutex_unlock(&turn);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void forget(void)
{
    memset(file.known, 0, sizeof file.known);
    file.object = 0;
}

/* Return where the register's value is kept, REGISTERS where it is not. */
static size_t place_of(uint32_t offset)
{
    const uint32_t in_monitor = offset % MONITOR_BYTES;
    if (offset < FIRST_MONITOR || offset >= END_MONITORS || offset % 4 != 0 ||
        (in_monitor >= FIRST_STATE && in_monitor < END_STATE))
        return REGISTERS;
    return (offset - FIRST_MONITOR) / 4;
}

static bool is_plain_write(const kprof_register_op *op)
{
    return op->operation == KPROF_WRITE_32 && op->type == 1 && op->quad == 0 && op->group_mask == 0 &&
           op->subgroup_mask == 0 && op->mask_high == 0 && op->value_high == 0;
}

static void write_waiting(void)
{
    kprof_kept_call *waiting = &file.waiting;
    if (waiting->ops.count == 0)
        return;
    int result;
    do
        result = waiting->call.issue(waiting->call.fd, waiting->call.request, waiting->call.argument);
    while (result != 0 && errno == EINTR); /* a signal comes for the application */
    bool written = result == 0 && waiting->control.status == 0;
    for (uint32_t i = 0; i < waiting->ops.count; i++)
        written = written && waiting->ops.ops[i].status == 0;
    if (!written) {
        file.failed = true;
        forget();
    }
    waiting->ops.count = 0;
}

/* May the call wait? Calls that write a few bits switch counters on and off: make them at once, behind what waits. */
static bool may_wait(const kprof_control_call *control, const kprof_register_ops *ops)
{
    bool whole = false;
    if (control->client != file.client || control->object != file.object || ops->mode != 0 || ops->direct != 0)
        return false;
    for (uint32_t i = 0; i < ops->count; i++) {
        if (!is_plain_write(&ops->ops[i]))
            return false;
        whole = whole || ops->ops[i].mask_low == ALL_BITS;
    }
    return whole;
}

static void add(const kprof_ioctl_call *call, const kprof_register_op *op)
{
    kprof_register_ops *ops = &file.waiting.ops;
    if (ops->count == KPROF_MOST_OPS)
        write_waiting();
    if (ops->count == 0) {
        kprof_kept_call_take(&file.waiting, call);
        ops->count = 0;
    }
    ops->ops[ops->count++] = *op;
}

/* The op is made, or waits. */
static void note_op(const kprof_register_op *op)
{
    const size_t place = place_of(op->offset);
    if (place == REGISTERS)
        return;
    file.known[place] = op->mask_low == ALL_BITS;
    file.values[place] = op->value_low;
}

static bool holds(const kprof_register_op *op)
{
    const size_t place = place_of(op->offset);
    return place < REGISTERS && op->mask_low == ALL_BITS && file.known[place] && file.values[place] == op->value_low;
}

/* Let the call wait, but for what the registers hold. */
static void take(kprof_ioctl_call *call, const kprof_register_ops *ops)
{
    for (uint32_t i = 0; i < ops->count; i++) {
        if (!holds(&ops->ops[i]))
            add(call, &ops->ops[i]);
        note_op(&ops->ops[i]);
    }
    kprof_register_call_answer(call, file.passed);
}

/* A call was made: note what the registers hold now. */
static void note(const kprof_ioctl_call *call, const kprof_control_call *control, const kprof_register_ops *ops)
{
    if (control->command == BUFFER_GET_PUT)
        return;
    bool plain = ops && call->result == 0 && control->status == 0 && ops->mode == 0 && ops->direct == 0;
    if (!plain || control->client != file.client || control->object != file.object)
        forget();
    if (!plain)
        return;
    file.client = control->client;
    file.object = control->object;
    file.passed = ops->passed;
    for (uint32_t i = 0; i < ops->count; i++) {
        if (!is_plain_write(&ops->ops[i]) || ops->ops[i].status != 0)
            plain = false;
        note_op(&ops->ops[i]);
    }
    if (!plain)
        forget();
}

void kprof_registers_make(kprof_ioctl_call *call)
{
    kprof_control_call *control = call->argument;
    kprof_register_ops *ops = kprof_register_ops_of(control);
    const sigset_t before = take_turn();
    if (ops && atomic_load(&programmer) == (unsigned long)pthread_self() && may_wait(control, ops)) {
        take(call, ops);
    } else {
        write_waiting();
        call->result = call->issue(call->fd, call->request, call->argument);
        const int error = errno;
        note(call, control, ops);
        errno = error;
    }
    give_turn(before);
}

void kprof_registers_write(void)
{
    if (atomic_load(&programmer) != (unsigned long)pthread_self())
        return;
    const sigset_t before = take_turn();
    write_waiting();
    give_turn(before);
}

void kprof_registers_begin(void)
{
    const sigset_t before = take_turn();
    file.failed = false;
    atomic_store(&programmer, (unsigned long)pthread_self());
    give_turn(before);
}

bool kprof_registers_end(void)
{
    const sigset_t before = take_turn();
    write_waiting();
    atomic_store(&programmer, 0);
    const bool written = !file.failed;
    give_turn(before);
    return written;
}

void kprof_registers_forget(void)
{
    const sigset_t before = take_turn();
    write_waiting();
    forget();
    give_turn(before);
}

void kprof_registers_forget_forked(void)
{
    pthread_mutex_init(&turn, NULL);
    atomic_store(&programmer, 0);
    file.waiting.ops.count = 0;
    forget();
}
