/* What reaches the registers of a device of this file while passes start and stop: at each call that is made at once
 * they hold what they would hold if every call were made as it comes. */
#include "cupti/registers.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define SELECT  0x180050U /* of the first monitor: it stays as it was written */
#define STATE   0x1800c8U /* of the same one: writing it does something */
#define BITS    0xf0000000U
#define TRIGGER 0x424808U
#define OTHER   0xb0cc0109U
#define RESERVE 0xb0cc0101U

/* Registers of the device, by hash; few enough that none meet. */
#define PLACES 4096

typedef struct registers {
    uint32_t values[PLACES];
    unsigned state_writes;
} registers;

static registers device, wanted;
static unsigned calls, ops_made; /* that reached the device */
static int result_of_device, interruptions;
static uint32_t status_of_device;
static uint8_t status_of_op;
static bool signals; /* each call that reaches the device raises one */
static volatile sig_atomic_t handled;

static void write_ops(registers *to, const kprof_register_ops *ops)
{
    for (uint32_t i = 0; i < ops->count; i++) {
        const kprof_register_op *op = &ops->ops[i];
        uint32_t *value = &to->values[op->offset / 4 % PLACES];
        *value = (*value & ~op->mask_low) | (op->value_low & op->mask_low);
        to->state_writes += op->offset == STATE;
    }
}

static int run_on_device(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    kprof_control_call *control = va_arg(list, kprof_control_call *);
    va_end(list);
    assert_int_equal(fd, 7);
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    calls++;
    if (signals)
        (void)raise(SIGUSR1);
    control->status = status_of_device;
    kprof_register_ops *ops = kprof_register_ops_of(control);
    if (!ops)
        return result_of_device;
    for (uint32_t i = 0; i < ops->count; i++)
        ops->ops[i].status = status_of_op;
    ops->passed = 0;
    ops_made += ops->count;
    if (result_of_device == 0 && status_of_device == 0)
        write_ops(&device, ops);
    return result_of_device;
}

static kprof_register_ops made;
static kprof_control_call made_control;

static void begin_call(void)
{
    memset(&made, 0, sizeof made);
    made_control = (kprof_control_call){.client = 1,
                                        .object = 2,
                                        .command = KPROF_EXEC_REG_OPS,
                                        .parameters = (uintptr_t)&made,
                                        .parameter_bytes = sizeof made,
                                        .status = 99};
}

static void put(uint32_t offset, uint32_t value, uint32_t mask)
{
    made.ops[made.count++] = (kprof_register_op){
        .operation = KPROF_WRITE_32, .type = 1, .status = 9, .offset = offset, .value_low = value, .mask_low = mask};
}

static int issue(void)
{
    kprof_ioctl_call call = {
        .fd = 7, .request = KPROF_CONTROL_REQUEST, .argument = &made_control, .issue = run_on_device};
    kprof_registers_make(&call);
    return call.result;
}

/* Write one register, and answer as the driver sees it. */
static void write_register(uint32_t offset, uint32_t value, uint32_t mask)
{
    begin_call();
    put(offset, value, mask);
    assert_int_equal(issue(), 0);
    assert_int_equal(made_control.status, 0);
    assert_int_equal(made.ops[0].status, 0);
}

static void trigger(void)
{
    write_register(TRIGGER, BITS, BITS);
    write_register(TRIGGER, 0, BITS);
}

static uint32_t held(uint32_t offset)
{
    return device.values[offset / 4 % PLACES];
}

static int setup(void **state)
{
    memset(&device, 0, sizeof device);
    memset(&wanted, 0, sizeof wanted);
    result_of_device = interruptions = 0;
    status_of_device = status_of_op = 0;
    kprof_registers_forget();
    kprof_registers_begin();
    trigger(); /* kprof learns the object */
    calls = ops_made = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)kprof_registers_end();
    return 0;
}

TEST(test_unchanged_left_out)
{
    write_register(SELECT, 5, ~0U);
    assert_int_equal(calls, 0); /* it waits */
    trigger();
    assert_int_equal(held(SELECT), 5);
    assert_int_equal(calls, 3);
    write_register(SELECT, 5, ~0U);
    trigger();
    assert_int_equal(calls, 5);
    write_register(SELECT, 6, ~0U);
    write_register(SELECT, 5, ~0U);
    trigger();
    assert_int_equal(calls, 8);
    assert_int_equal(ops_made, 9); /* both of the last writes, in one call */
    assert_int_equal(held(SELECT), 5);
    assert_true(kprof_registers_end());
}

/* State that the hardware changes, registers that are no monitor's, and bits of a register are always written. */
TEST(test_always_written)
{
    for (int i = 0; i < 3; i++) {
        begin_call();
        put(STATE, 0x100, ~0U);
        put(0x5071c8, 0x204, ~0U);
        put(SELECT + 4, 1, 0xff);
        assert_int_equal(issue(), 0);
        trigger();
    }
    assert_int_equal(device.state_writes, 3);
    assert_int_equal(ops_made, 9 + 6);
    write_register(SELECT + 4, 0x101, ~0U);
    write_register(SELECT + 4, 2, 0xff); /* at once, and the register is no longer known */
    write_register(SELECT + 4, 2, ~0U);
    trigger();
    assert_int_equal(held(SELECT + 4), 2);
}

TEST(test_other_calls_come_behind)
{
    write_register(SELECT, 5, ~0U);
    kprof_registers_write();
    assert_int_equal(held(SELECT), 5);
    write_register(SELECT, 6, ~0U);
    begin_call();
    made_control.command = OTHER;
    assert_int_equal(issue(), 0);
    assert_int_equal(held(SELECT), 6);
    write_register(SELECT, 6, ~0U); /* that call changed none */
    trigger();
    assert_int_equal(calls, 5);
    begin_call();
    made_control.command = RESERVE;
    assert_int_equal(issue(), 0);
    device.values[SELECT / 4 % PLACES] = 0;
    trigger(); /* known by this object again */
    write_register(SELECT, 6, ~0U);
    trigger();
    assert_int_equal(held(SELECT), 6);
}

TEST(test_other_object)
{
    write_register(SELECT, 5, ~0U);
    trigger();
    begin_call();
    put(SELECT, 7, ~0U);
    made_control.object = 3;
    assert_int_equal(issue(), 0);
    assert_int_equal(held(SELECT), 7);
    write_register(SELECT, 5, ~0U);
    trigger();
    assert_int_equal(held(SELECT), 5);
}

/* Reads, other widths, other modes and more operations than there is room for are not kprof's to leave out. */
TEST(test_not_understood)
{
    write_register(SELECT, 5, ~0U);
    trigger();
    calls = 0;
    for (int i = 0; i < 6; i++) {
        begin_call();
        put(SELECT, 5, ~0U);
        made.ops[0].operation = (uint8_t)(i == 0 ? 0 : KPROF_WRITE_32);
        made.ops[0].type = (uint8_t)(i == 1 ? 0 : 1);
        made.ops[0].group_mask = i == 2;
        made.mode = i == 3;
        made.direct = i == 4;
        made.count = i == 5 ? 125 : 1;
        assert_int_equal(issue(), 0);
        assert_int_equal(calls, 1);
        write_register(SELECT, 5, ~0U); /* the values are no longer known */
        kprof_registers_write();
        assert_true(calls >= 2);
        trigger();
        calls = 0;
    }
}

TEST(test_outside_of_a_pass_start)
{
    write_register(SELECT, 5, ~0U);
    assert_true(kprof_registers_end());
    assert_int_equal(held(SELECT), 5);
    calls = 0;
    write_register(SELECT, 5, ~0U);
    assert_int_equal(calls, 1);
    kprof_registers_begin();
    write_register(SELECT, 5, ~0U);
    assert_true(kprof_registers_end());
    assert_int_equal(calls, 1); /* kept over the end */
}

static void *write_in_thread(void *unused)
{
    write_register(SELECT, 8, ~0U);
    return unused;
}

TEST(test_other_thread)
{
    pthread_t thread;
    write_register(SELECT, 5, ~0U);
    assert_int_equal(pthread_create(&thread, NULL, write_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(held(SELECT), 8);
    write_register(SELECT, 5, ~0U);
    trigger();
    assert_int_equal(held(SELECT), 5);
}

/* Write another register, through another object, again and again. */
static void *write_meanwhile(void *ends)
{
    static kprof_register_ops ops;
    while (!atomic_load((atomic_bool *)ends)) {
        ops = (kprof_register_ops){
            .count = 1,
            .ops = {{.operation = KPROF_WRITE_32, .type = 1, .offset = SELECT + 8, .value_low = 1, .mask_low = ~0U}}};
        kprof_control_call control = {.client = 1,
                                      .object = 3,
                                      .command = KPROF_EXEC_REG_OPS,
                                      .parameters = (uintptr_t)&ops,
                                      .parameter_bytes = sizeof ops};
        kprof_ioctl_call call = {
            .fd = 7, .request = KPROF_CONTROL_REQUEST, .argument = &control, .issue = run_on_device};
        kprof_registers_make(&call);
        kprof_registers_write(); /* what waits is not this thread's */
    }
    return NULL;
}

TEST(test_other_thread_meanwhile)
{
    pthread_t thread;
    atomic_bool ends = false;
    assert_int_equal(pthread_create(&thread, NULL, write_meanwhile, &ends), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        kprof_registers_begin();
        write_register(SELECT, i % 3, ~0U);
        trigger();
        assert_int_equal(held(SELECT), i % 3);
        write_register(SELECT, i % 2, ~0U);
        assert_true(kprof_registers_end());
        assert_int_equal(held(SELECT), i % 2);
    }
    atomic_store(&ends, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void expect_failure(void)
{
    write_register(SELECT, 5, ~0U);
    kprof_registers_write();
    result_of_device = 0;
    status_of_device = status_of_op = 0;
    assert_false(kprof_registers_end());
    kprof_registers_begin();
    trigger();
    write_register(SELECT, 5, ~0U);
    assert_true(kprof_registers_end());
    assert_int_equal(held(SELECT), 5);
}

TEST(test_failure)
{
    result_of_device = -1;
    errno = EIO;
    expect_failure();
    kprof_registers_begin();
    write_register(SELECT, 4, ~0U);
    trigger();
    status_of_device = 31;
    expect_failure();
    kprof_registers_begin();
    write_register(SELECT, 4, ~0U);
    trigger();
    status_of_op = 4;
    expect_failure();
}

TEST(test_interrupted)
{
    write_register(SELECT, 5, ~0U);
    interruptions = 2;
    assert_true(kprof_registers_end());
    assert_int_equal(held(SELECT), 5);
}

static void handle(int number)
{
    kprof_registers_write(); /* as for an ioctl of the handler's, such as one that asks for a terminal's size */
    handled++;
}

/* A handler of the application runs on the thread only when that has let go of the registers. */
TEST(test_handler_that_calls_ioctl)
{
    struct sigaction mine = {.sa_handler = handle}, before;
    assert_int_equal(sigaction(SIGUSR1, &mine, &before), 0);
    alarm(5); /* it would wait for itself */
    signals = true;
    trigger();
    assert_int_equal(handled, 2);
    write_register(SELECT, 5, ~0U);
    kprof_registers_write();
    assert_int_equal(handled, 3);
    write_register(SELECT, 6, ~0U);
    assert_true(kprof_registers_end());
    assert_int_equal(handled, 4);
    signals = false;
    alarm(0);
    assert_int_equal(held(SELECT), 6);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

TEST(test_forked)
{
    write_register(SELECT, 5, ~0U);
    kprof_registers_forget_forked(); /* the write is its parent's */
    assert_true(kprof_registers_end());
    assert_int_equal(calls, 0);
}

static uint32_t random_state;

static uint32_t random_below(uint32_t end)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % end;
}

/* Calls of any kind, by the passes of one thread: at each that cannot wait the device is as without kprof. */
TEST(test_random)
{
    random_state = 1;
    unsigned asked = 0;
    for (int step = 0; step < 20000; step++) {
        const uint32_t kind = random_below(40);
        if (kind == 0) {
            assert_true(kprof_registers_end());
            assert_memory_equal(&device, &wanted, sizeof device);
            kprof_registers_begin();
            continue;
        }
        begin_call();
        made_control.object = kind == 1 ? 3 : 2;
        const uint32_t count = kind == 2 ? 1 : 1 + random_below(KPROF_MOST_OPS);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t offset = 0x180000U + 4 * random_below(2 * 128);
            put(offset, random_below(2) * 0x101, kind <= 3 ? 0xffU : ~0U);
        }
        asked += made.count;
        const bool waits = kind > 3;
        write_ops(&wanted, &made);
        assert_int_equal(issue(), 0);
        if (!waits)
            assert_memory_equal(device.values, wanted.values, sizeof device.values);
    }
    assert_true(kprof_registers_end());
    assert_memory_equal(&device, &wanted, sizeof device);
    assert_true(ops_made < asked);
    kprof_registers_begin();
}

AROUND_EACH(setup, teardown)
