/* Which control calls of the driver are left out while counters are kept on. The calls go to a device of this file. */
#include "cupti/counting.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define RM_CONTROL   0xc020462aUL
#define EXEC_REG_OPS 0xb0cc010aU
#define OTHER        0xb0cc0109U
#define BITS         0xf0000000U

/* The layouts once more, by offset: what the driver expects must not change with the code. */
typedef struct device_call {
    uint32_t words[8];
    unsigned char ops[3980];
} device_call;

/* What the preloaded library has. */
__attribute__((visibility("default"))) kprof_ioctl_slot kprof_ioctl_hook_slot;

static uint32_t reached[16]; /* the first value that each call which was made would write */
static size_t reached_count;
static int result_of_device, interruptions; /* by signals, of the calls that come */
static uint32_t status_of_device;
static unsigned char status_of_registers; /* of the second one; the first is always written */

static int run_on_device(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    uint32_t *words = va_arg(list, uint32_t *);
    va_end(list);
    assert_int_equal(fd, 7);
    assert_int_equal(request, RM_CONTROL);
    if (interruptions > 0) {
        interruptions--;
        errno = EINTR;
        return -1;
    }
    unsigned char *ops = (unsigned char *)(uintptr_t) * (uint64_t *)(void *)(words + 4);
    words[7] = status_of_device;
    if (!ops)
        return result_of_device;
    assert_true(reached_count < sizeof reached / sizeof *reached);
    memcpy(&reached[reached_count++], ops + 12 + 20, sizeof *reached);
    ops[8] = status_of_registers == 0;
    ops[12 + 2] = 0;
    ops[12 + 32 + 2] = status_of_registers;
    return result_of_device;
}

static void put(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

/* A call that writes two registers, from `offset` on. */
static device_call *make_call(device_call *call, uint32_t offset, uint32_t value)
{
    memset(call, 0, sizeof *call);
    call->words[0] = 0xc1d00001;
    call->words[1] = 0x5c000002;
    call->words[2] = EXEC_REG_OPS;
    uint64_t address = (uintptr_t)call->ops;
    memcpy(call->words + 4, &address, sizeof address);
    call->words[6] = sizeof call->ops;
    call->words[7] = 99; /* the device writes the status */
    put(call->ops, 2);
    for (size_t i = 0; i < 2; i++) {
        unsigned char *op = call->ops + 12 + 32 * i;
        op[0] = op[1] = 1;
        op[2] = 9; /* the device writes the status */
        put(op + 12, offset + 4 * (uint32_t)i);
        put(op + 20, value);
        put(op + 28, BITS);
    }
    return call;
}

/* Make the call as the preloaded library does; -2 where no hook is set. */
static int issue(device_call *call)
{
    kprof_ioctl_hook *hook = atomic_load(&kprof_ioctl_hook_slot);
    kprof_ioctl_call made = {.fd = 7, .request = RM_CONTROL, .argument = call->words, .issue = run_on_device};
    if (!hook)
        return -2;
    return hook(&made) ? made.result : run_on_device(7, RM_CONTROL, call->words);
}

static int switch_counters(uint32_t value)
{
    device_call call;
    return issue(make_call(&call, 0x424808, value));
}

static void expect_reached(size_t count, const uint32_t *values)
{
    assert_int_equal(reached_count, count);
    assert_memory_equal(reached, values, count * sizeof *values);
    reached_count = 0;
}

static int setup(void **state)
{
    reached_count = 0;
    result_of_device = interruptions = 0;
    status_of_device = 0;
    status_of_registers = 0;
    kprof_counting_keep(true);
    return 0;
}

static int teardown(void **state)
{
    kprof_counting_keep(false);
    assert_null(atomic_load(&kprof_ioctl_hook_slot));
    return 0;
}

/* On, off, on, off, ... reaches the device as on; off follows at the end. */
TEST(test_kept_on)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(switch_counters(BITS), 0);
        assert_int_equal(switch_counters(0), 0);
    }
    expect_reached(1, (uint32_t[]){BITS});
    kprof_counting_keep(false);
    expect_reached(1, (uint32_t[]){0});
    kprof_counting_keep(true);
}

TEST(test_interrupted)
{
    interruptions = 1;
    assert_int_equal(switch_counters(BITS), -1); /* the driver tries again */
    assert_int_equal(switch_counters(BITS), 0);
    assert_int_equal(switch_counters(0), 0);
    interruptions = 2;
    kprof_counting_keep(false);
    expect_reached(2, (uint32_t[]){BITS, 0});
    kprof_counting_keep(true);
}

TEST(test_ends_switched_on)
{
    assert_int_equal(switch_counters(BITS), 0);
    kprof_counting_keep(false);
    expect_reached(1, (uint32_t[]){BITS}); /* the driver has not asked for off */
    kprof_counting_keep(true);
}

/* A call that is left out looks as one that succeeded. */
TEST(test_answer)
{
    device_call call;
    assert_int_equal(switch_counters(BITS), 0);
    assert_int_equal(issue(make_call(&call, 0x424808, 0)), 0);
    assert_int_equal(call.words[7], 0);
    assert_int_equal(call.ops[8], 1); /* all were written */
    assert_int_equal(call.ops[12 + 2], 0);
    assert_int_equal(call.ops[12 + 32 + 2], 0);
    expect_reached(1, (uint32_t[]){BITS});
}

/* Any other call to the profiler finds the counters off, if the driver has switched them off. */
TEST(test_other_calls)
{
    device_call call;
    switch_counters(BITS);
    switch_counters(0);
    make_call(&call, 0x1234, 5);
    call.words[2] = OTHER;
    assert_int_equal(issue(&call), 0);
    expect_reached(3, (uint32_t[]){BITS, 0, 5});
    switch_counters(BITS);
    assert_int_equal(issue(make_call(&call, 0x1234, 5)), 0); /* on as far as the driver knows */
    switch_counters(0);
    expect_reached(3, (uint32_t[]){BITS, 5, 0});
}

TEST(test_other_registers)
{
    device_call call;
    switch_counters(BITS);
    switch_counters(0);
    assert_int_equal(issue(make_call(&call, 0x999, BITS)), 0);
    expect_reached(3, (uint32_t[]){BITS, 0, BITS});
    assert_int_equal(switch_counters(0), 0); /* of others than those that are on */
    expect_reached(1, (uint32_t[]){0});
    switch_counters(BITS);
    make_call(&call, 0x424808, 0);
    call.words[1]++; /* another object */
    assert_int_equal(issue(&call), 0);
    put(make_call(&call, 0x424808, BITS)->ops + 12 + 28, 0xff000000); /* other bits */
    assert_int_equal(issue(&call), 0);
    expect_reached(3, (uint32_t[]){BITS, 0, BITS});
}

TEST(test_what_is_no_switch)
{
    device_call call;
    switch_counters(BITS);
    make_call(&call, 0x424808, 0)->ops[12] = 0; /* a read */
    assert_int_equal(issue(&call), 0);
    put(make_call(&call, 0x424808, 0)->ops, 200); /* more than there is room for */
    assert_int_equal(issue(&call), 0);
    memset(make_call(&call, 0x424808, 0)->words + 4, 0, sizeof(uint64_t)); /* no registers */
    assert_int_equal(issue(&call), 0);
    make_call(&call, 0x424808, 0)->words[6] = 64; /* another layout */
    assert_int_equal(issue(&call), 0);
    put(make_call(&call, 0x424808, 0)->ops, 0); /* nothing */
    assert_int_equal(issue(&call), 0);
    expect_reached(5, (uint32_t[]){BITS, 0, 0, 0, 0});
}

TEST(test_call_that_fails)
{
    status_of_device = 31;
    assert_int_equal(switch_counters(BITS), 0);
    assert_int_equal(switch_counters(0), 0);
    expect_reached(2, (uint32_t[]){BITS, 0});
    status_of_device = 0;
    result_of_device = -1;
    assert_int_equal(switch_counters(BITS), -1);
    assert_int_equal(switch_counters(0), -1);
    expect_reached(2, (uint32_t[]){BITS, 0});
}

/* The call itself succeeds, in the mode that goes on behind a register which cannot be written. */
TEST(test_register_that_fails)
{
    device_call call;
    status_of_registers = 4;
    assert_int_equal(switch_counters(BITS), 0);
    assert_int_equal(issue(make_call(&call, 0x424808, 0)), 0);
    assert_int_equal(call.ops[8], 0);
    assert_int_equal(call.ops[12 + 32 + 2], 4);
    expect_reached(2, (uint32_t[]){BITS, 0});
}

static void *switch_in_thread(void *unused)
{
    switch_counters(BITS);
    switch_counters(0);
    return unused;
}

TEST(test_other_threads)
{
    pthread_t thread;
    switch_counters(BITS);
    switch_counters(0);
    assert_int_equal(pthread_create(&thread, NULL, switch_in_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_reached(3, (uint32_t[]){BITS, BITS, 0});
}

/* A handler of the application may fork while counters are kept. */
TEST(test_forked)
{
    switch_counters(BITS);
    switch_counters(0);
    kprof_counting_forget();
    assert_int_equal(switch_counters(BITS), -2);
    kprof_counting_keep(false);
    expect_reached(1, (uint32_t[]){BITS});
}

/* Calls may write whole registers, of which kprof then knows the values while passes start and stop. */
static int switch_whole(uint32_t value)
{
    device_call call;
    make_call(&call, 0x180050, value);
    for (size_t i = 0; i < 2; i++)
        put(call.ops + 12 + 32 * i + 28, ~0U);
    return issue(&call);
}

TEST(test_start_behind_kept_counters)
{
    kprof_counting_program();
    assert_true(kprof_counting_programmed());
    assert_int_equal(switch_whole(~0U), 0);
    assert_int_equal(switch_whole(0), 0);
    kprof_counting_keep(false);
    expect_reached(2, (uint32_t[]){~0U, 0});
    kprof_counting_program();
    assert_int_equal(switch_whole(~0U), 0);
    assert_true(kprof_counting_programmed());
    expect_reached(1, (uint32_t[]){~0U});
    kprof_counting_release();
    kprof_counting_keep(true);
}

TEST(test_not_asked)
{
    kprof_counting_keep(false);
    assert_int_equal(switch_counters(BITS), -2);
    kprof_counting_keep(true);
}

int main(void)
{
    kprof_counting_find();
    around_each(setup, teardown);
    return run_all_tests();
}
