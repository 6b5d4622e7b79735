/* A client of the resource manager beside CUDA's own, with the GPU as its only object. */
#include "cupti/resources.h"

#include "core/folder.h"
#include "cupti/control_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Requests, classes and commands with the layouts of their parameters, as in nvos.h, cl0080.h, cl2080.h,
 * ctrl0000gpu.h and ctrl2080fb.h. */
#define ALLOCATION_REQUEST 0xc020462bU
#define CLIENT_CLASS       0x41
#define DEVICE_CLASS       0x80
#define SUBDEVICE_CLASS    0x2080
#define LIST_GPUS          0x201
#define TELL_GPU           0x205
#define TELL_PLACE         0x21b
#define FLUSH_CACHE        0x2080130e
#define WRITE_BACK         0x4
#define INVALIDATE         0x8
#define WHOLE_CACHE        0x10
#define MOST_GPUS          32
#define NO_GPU             0xffffffffU

/* Any numbers: those of a client's objects are its own. */
#define DEVICE    0x6b700001
#define SUBDEVICE 0x6b700002

typedef struct allocation {
    uint32_t root, parent, object, class;
    uint64_t parameters; /* an address */
    uint32_t parameter_bytes, status;
} allocation;

typedef struct device_parameters {
    uint32_t device, share, client, target, flags;
    uint64_t space_bytes, first, last;
    uint32_t mode;
} device_parameters;

typedef struct gpu_place {
    uint32_t gpu, domain;
    uint16_t bus, slot;
} gpu_place;

typedef struct gpu_numbers {
    uint32_t gpu, flags, device, subdevice, sli, board, instance;
    int32_t node;
} gpu_numbers;

typedef struct cache_flush {
    uint64_t addresses[500];
    uint32_t address_count, alignment;
    uint64_t block_bytes;
    uint32_t flags;
} cache_flush;

_Static_assert(sizeof(allocation) == 32 && sizeof(device_parameters) == 56, "the driver's layout");
_Static_assert(sizeof(gpu_place) == 12 && sizeof(gpu_numbers) == 32, "the driver's layout");
_Static_assert(sizeof(cache_flush) == 4024, "the driver's layout");

struct kprof_resources {
    int fd;
    dev_t device; /* identity of the file that `fd` must still be: the application may close it and reuse the number */
    ino_t inode;
    uint32_t client;
};

/* The call that takes a variable as its parameters. */
#define CALL(of, what, variable)                                                                                       \
    &(kprof_control_call)                                                                                              \
    {                                                                                                                  \
        .object = (of), .command = (what), .parameters = (uintptr_t)(variable), .parameter_bytes = sizeof *(variable)  \
    }

static bool is_own_file(const kprof_resources *resources)
{
    struct stat info;
    return fstat(resources->fd, &info) == 0 && info.st_dev == resources->device && info.st_ino == resources->inode;
}

/* Make the call, again where a signal for the application interrupts it. */
static int issue(const kprof_resources *resources, unsigned long request, void *call)
{
    int result;
    if (!is_own_file(resources))
        return -1;
    do
        result = ioctl(resources->fd, request, call);
    while (result != 0 && errno == EINTR);
    return result;
}

static bool control(const kprof_resources *resources, kprof_control_call *call)
{
    call->client = resources->client;
    return issue(resources, KPROF_CONTROL_REQUEST, call) == 0 && call->status == 0;
}

static bool allocate(const kprof_resources *resources, allocation *wanted, void *parameters, size_t bytes)
{
    wanted->root = resources->client;
    wanted->parameters = (uintptr_t)parameters;
    wanted->parameter_bytes = (uint32_t)bytes;
    return issue(resources, ALLOCATION_REQUEST, wanted) == 0 && wanted->status == 0;
}

static bool find_gpu(const kprof_resources *resources, const kprof_bus_place *place, gpu_numbers *out)
{
    uint32_t gpus[MOST_GPUS];
    if (!control(resources, CALL(resources->client, LIST_GPUS, &gpus)))
        return false;
    for (size_t i = 0; i < MOST_GPUS && gpus[i] != NO_GPU; i++) {
        gpu_place found = {.gpu = gpus[i]};
        if (!control(resources, CALL(resources->client, TELL_PLACE, &found)) || found.domain != place->domain ||
            found.bus != place->bus || found.slot != place->slot)
            continue;
        *out = (gpu_numbers){.gpu = gpus[i]};
        return control(resources, CALL(resources->client, TELL_GPU, out));
    }
    return false;
}

static bool make_objects(const kprof_resources *resources, const gpu_numbers *gpu)
{
    device_parameters device = {.device = gpu->device};
    uint32_t subdevice = gpu->subdevice;
    return allocate(resources, &(allocation){.parent = resources->client, .object = DEVICE, .class = DEVICE_CLASS},
                    &device, sizeof device) &&
           allocate(resources, &(allocation){.parent = DEVICE, .object = SUBDEVICE, .class = SUBDEVICE_CLASS},
                    &subdevice, sizeof subdevice);
}

static const char *prepare(kprof_resources *resources, const kprof_bus_place *place)
{
    gpu_numbers gpu;
    allocation client = {.class = CLIENT_CLASS};
    if (!allocate(resources, &client, NULL, 0))
        return "the driver's kernel module refuses a client";
    resources->client = client.object;
    if (!find_gpu(resources, place, &gpu))
        return "the driver's kernel module does not list the GPU";
    return make_objects(resources, &gpu) ? NULL : "the driver's kernel module does not open the GPU";
}

kprof_resources *kprof_resources_open(const char *path, const kprof_bus_place *place, const char **reason)
{
    kprof_resources *resources = calloc(1, sizeof *resources);
    *reason = "there is no memory";
    if (!resources)
        return NULL;
    resources->fd = open(path, O_RDWR | O_CLOEXEC);
    *reason = "the driver's device file cannot be opened";
    struct stat info;
    if (resources->fd >= 0 && fstat(resources->fd, &info) == 0) {
        resources->fd = kprof_fd_move_up(resources->fd);
        resources->device = info.st_dev;
        resources->inode = info.st_ino;
        *reason = prepare(resources, place);
    }
    if (!*reason)
        return resources;
    kprof_resources_close(resources);
    return NULL;
}

bool kprof_resources_empty_l2(kprof_resources *resources)
{
    cache_flush flush = {.flags = WRITE_BACK | INVALIDATE | WHOLE_CACHE}; /* of the GPU's own memory */
    return control(resources, CALL(SUBDEVICE, FLUSH_CACHE, &flush));
}

/* The kernel module frees a client's objects with its file. */
void kprof_resources_close(kprof_resources *resources)
{
    if (resources && is_own_file(resources))
        close(resources->fd);
    free(resources);
}
