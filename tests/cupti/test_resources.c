/* What the driver's kernel module is asked, with a module of this file in its place: it checks each call by offsets. */
#include "cupti/resources.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CLIENT = 0xc1d00042, FIRST_GPU = 0x100, SECOND_GPU = 0x1b00 };

static unsigned calls, fails_at, flushes; /* fails_at: of all calls, from 1; 0: none */
static bool fails_in_module;              /* with a status, not with a result */
static int last_fd;                       /* of these calls */
static bool interrupted;                  /* a signal interrupts every second call */
static uint32_t device, subdevice, device_of_client, subdevice_of_device;

static uint32_t word(const void *at, size_t offset)
{
    uint32_t value;
    memcpy(&value, (const char *)at + offset, sizeof value);
    return value;
}

static void put(void *at, size_t offset, uint32_t value)
{
    memcpy((char *)at + offset, &value, sizeof value);
}

static void *parameters_of(const void *call)
{
    uint64_t address;
    memcpy(&address, (const char *)call + 16, sizeof address);
    return (void *)(uintptr_t)address;
}

static void allocate(void *call, const void *parameters)
{
    uint32_t bytes = word(call, 24);
    switch (word(call, 12)) {
    case 0x41:
        put(call, 8, CLIENT);
        return;
    case 0x80:
        assert_true(word(call, 0) == CLIENT && word(call, 4) == CLIENT && bytes == 56);
        device_of_client = word(call, 8);
        device = word(parameters, 0);
        return;
    case 0x2080:
        assert_true(word(call, 0) == CLIENT && word(call, 4) == device_of_client && bytes == 4);
        subdevice_of_device = word(call, 8);
        subdevice = word(parameters, 0);
        return;
    default:
        fail();
    }
}

static void list_gpus(void *parameters)
{
    memset(parameters, 0xff, 128);
    put(parameters, 0, FIRST_GPU);
    put(parameters, 4, SECOND_GPU);
}

static void tell_place(void *parameters)
{
    uint32_t gpu = word(parameters, 0);
    put(parameters, 4, 1);
    put(parameters, 8, gpu == SECOND_GPU ? 0x1b | 2 << 16 : 1);
}

static void tell_gpu(void *parameters)
{
    assert_int_equal(word(parameters, 0), SECOND_GPU);
    put(parameters, 8, 5);
    put(parameters, 12, 6);
}

static void control(void *call, void *parameters)
{
    uint32_t object = word(call, 4), command = word(call, 8), bytes = word(call, 24);
    assert_int_equal(word(call, 0), CLIENT);
    assert_int_equal(object, command == 0x2080130e ? subdevice_of_device : CLIENT);
    if (command == 0x201 && bytes == 128)
        list_gpus(parameters);
    else if (command == 0x21b && bytes == 12)
        tell_place(parameters);
    else if (command == 0x205 && bytes == 32)
        tell_gpu(parameters);
    else if (command == 0x2080130e && bytes == 4024)
        flushes += word(parameters, 4016) == 0x1c; /* write back and invalidate all of the GPU's memory */
    else
        fail();
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *call = va_arg(list, void *);
    va_end(list);
    assert_true(fd > 2);
    last_fd = fd;
    bool fails = ++calls == fails_at, stops = interrupted && calls % 2 == 1;
    errno = stops ? EINTR : EIO;
    if (stops)
        return -1;
    put(call, 28, fails && fails_in_module ? 0x1b : 0);
    if (fails)
        return fails_in_module ? 0 : -1;
    if ((uint32_t)request == 0xc020462b)
        allocate(call, parameters_of(call));
    else if ((uint32_t)request == 0xc020462a)
        control(call, parameters_of(call));
    else
        fail();
    return 0;
}

static int set_up(void **state)
{
    calls = fails_at = flushes = 0;
    fails_in_module = interrupted = false;
    return 0;
}

static const kprof_bus_place second = {.domain = 1, .bus = 0x1b, .slot = 2};

TEST(test_empty)
{
    const char *reason;
    kprof_resources *resources = kprof_resources_open("/dev/null", &second, &reason);
    assert_non_null(resources);
    assert_true(device == 5 && subdevice == 6);
    assert_true(kprof_resources_empty_l2(resources));
    assert_true(kprof_resources_empty_l2(resources));
    assert_int_equal(flushes, 2);
    fails_at = calls + 1;
    assert_false(kprof_resources_empty_l2(resources));
    kprof_resources_close(resources);
}

/* The application closes all files and opens one of its own, which gets the number. */
TEST(test_file_of_application)
{
    const char *reason;
    kprof_resources *resources = kprof_resources_open("/dev/null", &second, &reason);
    assert_non_null(resources);
    int other = open("/dev/zero", O_RDONLY);
    assert_int_equal(dup2(other, last_fd), last_fd);
    unsigned before = calls;
    assert_false(kprof_resources_empty_l2(resources));
    assert_int_equal(calls, before);
    kprof_resources_close(resources);
    assert_true(fcntl(last_fd, F_GETFD) >= 0);
    close(last_fd);
    close(other);
}

TEST(test_interrupted)
{
    const char *reason;
    interrupted = true;
    kprof_resources *resources = kprof_resources_open("/dev/null", &second, &reason);
    assert_non_null(resources);
    assert_true(kprof_resources_empty_l2(resources));
    assert_int_equal(flushes, 1);
    kprof_resources_close(resources);
}

/* Refuse a call, by a result or by a status. */
static void refuse(unsigned number, bool in_module)
{
    const char *reason = NULL;
    set_up(NULL);
    fails_at = number;
    fails_in_module = in_module;
    kprof_resources *resources = kprof_resources_open("/dev/null", &second, &reason);
    if (number == 3) { /* the place of the GPU that is not wanted */
        assert_non_null(resources);
        kprof_resources_close(resources);
        return;
    }
    assert_null(resources);
    assert_non_null(reason);
    assert_int_equal(calls, number);
}

TEST(test_refused)
{
    enum { STEPS = 7 }; /* client, list, two places, GPU, device, subdevice */
    for (unsigned i = 1; i <= STEPS; i++) {
        refuse(i, false);
        refuse(i, true);
    }
}

TEST(test_not_there)
{
    const char *reason = NULL;
    const kprof_bus_place third = {.domain = 2, .bus = 0x1b, .slot = 2};
    assert_null(kprof_resources_open("/dev/null", &third, &reason));
    assert_string_equal(reason, "the driver's kernel module does not list the GPU");
    assert_null(kprof_resources_open("/dev/no/such", &second, &reason));
    assert_string_equal(reason, "the driver's device file cannot be opened");
    kprof_resources_close(NULL);
}

AROUND_EACH(set_up, NULL)
