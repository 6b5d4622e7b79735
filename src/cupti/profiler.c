/* One range profiler object per context, armed around the launches of a pass. */
#include "cupti/profiler.h"

#include "core/hold.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/blank.h"
#include "cupti/counting.h"
#include "host/host.h"
#include "host/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Wait for the counters: another process of the run gives them back once it is idle, but another tool does not. */
#define BUSY_WAIT_MS        5000
#define SHARED_BUSY_WAIT_MS 80
#define BUSY_POLL_MS        20

struct kprof_profiler {
    const kprof_cupti_api *cupti;
    const kprof_chip_metrics *metrics;
    CUcontext context;
    CUpti_RangeProfiler_Object *object; /* NULL while the counters are given back */
    const char **names; /* [name_count]: metrics, witnesses and proof; the strings are the metrics' own */
    size_t name_count;
    size_t range_bytes;   /* what each further range adds to an image, less its node in the tree of ranges; 0: not known
                             yet */
    size_t wanted_ranges; /* of this measurement, at most */
    unsigned image_index; /* KPROF_IMAGE_ */
    bool automatic;       /* as wanted */
    size_t asked_ranges;  /* the object was last asked for the size of an image of this many ranges; 0: unknown */
    size_t image_size;
    uint8_t *image;  /* [image_size] */
    bool given;      /* CUPTI's object has the image */
    void *old_image; /* [old_image_size], which CUPTI's object still has; NULL: none */
    size_t old_image_size;
    kprof_blank *blank; /* the image as CUPTI made it; NULL: not known */
    size_t used;        /* ranges written since then */
    size_t ranges;      /* in the object's first pass: it cannot have more later; 0: no pass yet */
    size_t next_pass;   /* of the config image; 0: the last measurement is complete */
    bool failed;        /* the next measurement takes a new object */
    unsigned unloads;   /* of modules, when the object was made */
};

/* The work of the process meanwhile. */
static struct {
    atomic_uint unloads; /* of modules */
    atomic_bool shares;  /* memory with other devices or processes */
} noted;

struct kprof_reader {
    kprof_host *host;
};

kprof_status kprof_cupti_fail(const struct kprof_cupti_api *cupti, const char *operation, int failure)
{
    const char *text = NULL;
    const CUptiResult result = (CUptiResult)failure;
    cupti->cuptiGetResultString(result, &text);
    switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return kprof_fail(KPROF_NO_PERMISSION,
                          "the driver keeps GPU counters from this user (ERR_NVGPUCTRPERM, %s: %s): run as root, or "
                          "have an administrator set the nvidia module option NVreg_RestrictProfilingToAdminUsers=0",
                          operation, text ? text : "");
    case CUPTI_ERROR_HARDWARE_BUSY:
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "the GPU counters are in use by another tool (%s): " KPROF_FREES_COUNTERS, operation);
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
        return kprof_fail(KPROF_UNSUPPORTED, "this device cannot be profiled (%s: %s)", operation, text ? text : "");
    default:
        return kprof_fail(KPROF_INTERNAL, "%s: %s (CUPTI error %d)", operation, text ? text : "no text", (int)result);
    }
}

kprof_status kprof_profilers_initialize(const struct kprof_cupti_api *cupti)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool done;
    KPROF_CUPTI_PARAMS(params, Profiler_Initialize);
    KPROF_HOLD(mutex);
    const kprof_status status = done ? KPROF_OK : KPROF_CUPTI_CALL(cupti, cuptiProfilerInitialize, params);
    done = status == KPROF_OK;
    return status;
}

static kprof_status enable(kprof_profiler *p)
{
    if (p->object)
        return KPROF_OK;
    KPROF_CUPTI_PARAMS(params, RangeProfiler_Enable, .ctx = p->context);
    kprof_status status = KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerEnable, params);
    if (status != KPROF_OK)
        return status;
    p->object = params.pRangeProfilerObject;
    p->ranges = p->asked_ranges = 0;
    p->unloads = atomic_load(&noted.unloads);
    return KPROF_OK;
}

/* A new object crashes on an image before it was asked for a size. */
static kprof_status measure_image(kprof_profiler *p, size_t ranges, size_t nodes, size_t *size)
{
    KPROF_CUPTI_PARAMS(params, RangeProfiler_GetCounterDataSize, .pRangeProfilerObject = p->object,
                       .pMetricNames = p->names, .numMetrics = p->name_count, .maxNumOfRanges = ranges,
                       .maxNumRangeTreeNodes = (uint32_t)nodes);
    p->asked_ranges = 0;
    kprof_status status = KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerGetCounterDataSize, params);
    if (status == KPROF_OK)
        *size = params.counterDataSize;
    return status;
}

static void forget_blank(kprof_profiler *p)
{
    kprof_blank_free(p->blank);
    p->blank = NULL;
}

static void unmap_old_image(kprof_profiler *p)
{
    if (p->old_image)
        munmap(p->old_image, p->old_image_size);
    p->old_image = NULL;
}

/* CUPTI's object has the image until it is given another, which can fail. */
static void retire_image(kprof_profiler *p)
{
    if (p->image && p->given) {
        p->old_image = p->image; /* there is no older one, since this was given */
        p->old_image_size = p->image_size;
    } else if (p->image) {
        munmap(p->image, p->image_size);
    }
    p->image = NULL;
    p->given = false;
    forget_blank(p);
}

/* Make an image for the ranges. CUPTI's object keeps the size that it was asked for last, and blanks the image by that.
 * Asking takes 2 ms. */
static kprof_status size_image(kprof_profiler *p)
{
    size_t size = 0;
    if (p->image && p->asked_ranges == p->wanted_ranges)
        return KPROF_OK;
    kprof_status status = measure_image(p, p->wanted_ranges, p->wanted_ranges, &size);
    p->asked_ranges = status == KPROF_OK ? p->wanted_ranges : 0;
    if (status != KPROF_OK || (p->image && p->image_size == size))
        return status;
    retire_image(p);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a counter data image of %zu bytes", size);
    (void)madvise(mapped, size, MADV_HUGEPAGE); /* CUPTI writes all of it before the first pass */
    p->image = mapped;
    p->image_size = size;
    return KPROF_OK;
}

static void measure_range(kprof_profiler *p)
{
    size_t one = 0, two = 0;
    if (p->range_bytes == 0 && measure_image(p, 1, 2, &one) == KPROF_OK && measure_image(p, 2, 2, &two) == KPROF_OK)
        p->range_bytes = two - one;
}

static kprof_status initialize_image(kprof_profiler *p)
{
    KPROF_CUPTI_PARAMS(params, RangeProfiler_CounterDataImage_Initialize, .pRangeProfilerObject = p->object,
                       .counterDataSize = p->image_size, .pCounterData = p->image);
    kprof_status status = KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerCounterDataImageInitialize, params);
    forget_blank(p);
    if (status == KPROF_OK)
        p->blank = kprof_blank_keep(p->image, p->image_size, p->wanted_ranges, p->range_bytes);
    return status;
}

static kprof_status blank_image(kprof_profiler *p)
{
    measure_range(p);
    kprof_status status = size_image(p);
    bool is_new = p->ranges == 0; /* such an object wants to initialize the image itself */
    if (status == KPROF_OK && (is_new || !p->blank || !kprof_blank_restore(p->blank, p->image, p->used)))
        status = initialize_image(p);
    if (status == KPROF_OK)
        p->used = 0;
    return status;
}

size_t kprof_profiler_capacity(kprof_profiler *p, size_t bytes)
{
    if (enable(p) == KPROF_OK)
        measure_range(p);
    size_t ranges = p->range_bytes ? bytes / p->range_bytes : 1;
    return ranges < 1 ? 1 : ranges;
}

static kprof_status collect_names(kprof_profiler *p)
{
    const kprof_strlist *lists[] = {&p->metrics->metrics, &p->metrics->witnesses, &p->metrics->proof};
    size_t count = lists[0]->count + lists[1]->count + lists[2]->count;
    p->names = calloc(count + 1, sizeof *p->names);
    if (!p->names)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a profiler");
    for (size_t l = 0; l < 3; l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            p->names[p->name_count++] = lists[l]->items[i];
    return KPROF_OK;
}

void kprof_profiler_preload(void)
{
    kprof_libraries_preload();
}

void kprof_profiler_prepare(void)
{
    const struct kprof_cupti_api *cupti;
    if (kprof_cupti_load(&cupti) == KPROF_OK)
        (void)!kprof_profilers_initialize(cupti);
}

kprof_status kprof_profiler_open(void *context, const kprof_chip_metrics *metrics, kprof_profiler **out)
{
    kprof_profiler *p = calloc(1, sizeof *p);
    if (!p)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for a profiler");
    p->metrics = metrics;
    p->context = context;
    int64_t time_ns = kprof_monotonic_ns();
    kprof_status status = kprof_cupti_load(&p->cupti);
    KPROF_THEN(status, kprof_profilers_initialize(p->cupti));
    double initialize_ms = kprof_monotonic_lap_ms(&time_ns);
    KPROF_THEN(status, collect_names(p));
    KPROF_THEN(status, enable(p));
    kprof_log(KPROF_LOG_DEBUG, "profiler ready: CUPTI %.1f ms, context %.1f ms", initialize_ms,
              kprof_monotonic_lap_ms(&time_ns));
    if (status != KPROF_OK) {
        kprof_profiler_close(p);
        p = NULL;
    }
    *out = p;
    return status;
}

void kprof_profilers_note_sharing(void)
{
    atomic_store(&noted.shares, true);
}

void kprof_profilers_note_unload(void)
{
    atomic_fetch_add(&noted.unloads, 1);
}

static bool knows_old_code(const kprof_profiler *p)
{
    return p->metrics->patches_code && p->unloads != atomic_load(&noted.unloads);
}

static kprof_status configure(kprof_profiler *p)
{
    const kprof_chip_image *image = kprof_chip_image_choose(p->metrics, p->image_index);
    if (!image)
        return kprof_fail(KPROF_UNSUPPORTED, "this chip does not count what kernels read and write of host memory");
    KPROF_CUPTI_PARAMS(params, RangeProfiler_SetConfig, .pRangeProfilerObject = p->object, .configSize = image->size,
                       .pConfig = image->data, .counterDataImageSize = p->image_size, .pCounterDataImage = p->image,
                       .range = p->automatic ? CUPTI_AutoRange : CUPTI_UserRange, .replayMode = CUPTI_UserReplay,
                       .maxRangesPerPass = p->wanted_ranges, .numNestingLevels = 1, .minNestingLevel = 1,
                       .targetNestingLevel = p->automatic ? 0 : 1);
    kprof_status status = KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerSetConfig, params);
    if (status != KPROF_OK)
        return status;
    p->given = true;
    unmap_old_image(p);
    return KPROF_OK;
}

/* CUPTI goes on with the passes that are left, keeps the first config image, and drops ranges that are too many: for
 * anything else the object is made anew. */
static bool serves(const kprof_profiler *p, const kprof_measurement *wanted, unsigned image_index)
{
    bool same = image_index == p->image_index && wanted->automatic == p->automatic;
    return !p->failed && !knows_old_code(p) && (p->ranges == 0 || (wanted->ranges <= p->ranges && same));
}

/* Return OK, or the failure of a call after which the object is made anew. */
static kprof_status check(kprof_profiler *p, const char *operation, CUptiResult result)
{
    p->failed = p->failed || result != CUPTI_SUCCESS;
    return kprof_cupti_check(p->cupti, operation, result);
}

static void begin_programming(const kprof_profiler *p)
{
    if (kprof_counting_knows(p->metrics->chip))
        kprof_counting_program();
}

static kprof_status programmed(kprof_profiler *p, kprof_status status)
{
    if (!kprof_counting_knows(p->metrics->chip) || kprof_counting_programmed())
        return status;
    p->failed = true;
    return status == KPROF_OK ? kprof_fail(KPROF_NOT_COLLECTED, "the driver could not set the GPU's counters up")
                              : status;
}

kprof_status kprof_profiler_start(kprof_profiler *p)
{
    KPROF_CUPTI_PARAMS(params, RangeProfiler_Start, .pRangeProfilerObject = p->object);
    begin_programming(p);
    CUptiResult result = p->cupti->cuptiRangeProfilerStart(&params);
    /* Work of another process may wait for this one. */
    const int limit_ms = atomic_load(&noted.shares) ? SHARED_BUSY_WAIT_MS : BUSY_WAIT_MS;
    for (int waited_ms = 0; result == CUPTI_ERROR_HARDWARE_BUSY && waited_ms < limit_ms; waited_ms += BUSY_POLL_MS) {
        usleep(BUSY_POLL_MS * 1000);
        result = p->cupti->cuptiRangeProfilerStart(&params);
    }
    if (result == CUPTI_SUCCESS && p->ranges == 0)
        p->ranges = p->wanted_ranges;
    const kprof_status status = programmed(p, check(p, "cuptiRangeProfilerStart", result));
    KPROF_CUPTI_PARAMS(stop, RangeProfiler_Stop, .pRangeProfilerObject = p->object);
    if (status != KPROF_OK && result == CUPTI_SUCCESS) /* it would count something else */
        (void)p->cupti->cuptiRangeProfilerStop(&stop);
    return status;
}

kprof_status kprof_profiler_stop(kprof_profiler *p, bool *more)
{
    KPROF_CUPTI_PARAMS(params, RangeProfiler_Stop, .pRangeProfilerObject = p->object);
    begin_programming(p);
    CUptiResult result = p->cupti->cuptiRangeProfilerStop(&params);
    *more = !params.isAllPassSubmitted;
    p->next_pass = *more ? p->next_pass + 1 : 0;
    return programmed(p, check(p, "cuptiRangeProfilerStop", result));
}

kprof_status kprof_profiler_skip_pass(kprof_profiler *p)
{
    bool more;
    kprof_status status = kprof_profiler_start(p);
    return KPROF_THEN(status, kprof_profiler_stop(p, &more));
}

kprof_status kprof_profiler_run_out(kprof_profiler *p)
{
    kprof_status status = KPROF_OK;
    while (p->object && p->next_pass > 0 && status == KPROF_OK)
        status = kprof_profiler_skip_pass(p);
    return status;
}

kprof_status kprof_profiler_begin(kprof_profiler *p, const kprof_measurement *wanted)
{
    bool witnessed = wanted->all_witnesses && p->metrics->images[KPROF_IMAGE_WITNESSED].size > 0;
    unsigned image_index = (witnessed ? KPROF_IMAGE_WITNESSED : 0) | (wanted->proved ? KPROF_IMAGE_PROVED : 0);
    if (wanted->proof_alone)
        image_index = KPROF_IMAGE_PROOF;
    if (!serves(p, wanted, image_index))
        kprof_profiler_release(p);
    if (kprof_profiler_run_out(p) != KPROF_OK) /* passes that are left; a new object takes longer */
        kprof_profiler_release(p);
    p->wanted_ranges = wanted->ranges;
    p->image_index = image_index;
    p->automatic = wanted->automatic;
    kprof_status status = enable(p);
    KPROF_THEN(status, blank_image(p));
    return KPROF_THEN(status, configure(p));
}

bool kprof_profiler_goes_on(const kprof_profiler *p)
{
    return p->object && !p->failed && !knows_old_code(p);
}

kprof_status kprof_profiler_next_pass(kprof_profiler *p, uint32_t *pass)
{
    bool proved = p->image_index & KPROF_IMAGE_PROVED;
    kprof_status status = proved && p->next_pass == 0 ? kprof_profiler_skip_pass(p) : KPROF_OK;
    *pass = (uint32_t)p->next_pass - proved;
    return status;
}

kprof_status kprof_profiler_push(kprof_profiler *p, size_t number)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", number);
    KPROF_CUPTI_PARAMS(params, RangeProfiler_PushRange, .pRangeProfilerObject = p->object, .pRangeName = name);
    return check(p, "cuptiRangeProfilerPushRange", p->cupti->cuptiRangeProfilerPushRange(&params));
}

kprof_status kprof_profiler_pop(kprof_profiler *p)
{
    KPROF_CUPTI_PARAMS(params, RangeProfiler_PopRange, .pRangeProfilerObject = p->object);
    return check(p, "cuptiRangeProfilerPopRange", p->cupti->cuptiRangeProfilerPopRange(&params));
}

kprof_status kprof_profiler_decode(kprof_profiler *p, size_t ranges)
{
    p->used = ranges;
    KPROF_CUPTI_PARAMS(params, RangeProfiler_DecodeData, .pRangeProfilerObject = p->object);
    KPROF_CUPTI_PARAMS(info, RangeProfiler_GetCounterDataInfo, .pCounterDataImage = p->image,
                       .counterDataImageSize = p->image_size);
    kprof_status status = KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerDecodeData, params);
    KPROF_THEN(status, KPROF_CUPTI_CALL(p->cupti, cuptiRangeProfilerGetCounterDataInfo, info));
    if (status != KPROF_OK)
        return status;
    p->used = p->used < info.numTotalRanges ? info.numTotalRanges : p->used;
    if (params.numOfRangeDropped > 0 || info.numTotalRanges != ranges)
        return kprof_fail(KPROF_NOT_COLLECTED, "CUPTI recorded %zu ranges instead of %zu and dropped %zu",
                          info.numTotalRanges, ranges, params.numOfRangeDropped);
    return KPROF_OK;
}

const void *kprof_profiler_image(const kprof_profiler *p, size_t *size)
{
    *size = p->image_size;
    return p->image;
}

void kprof_profiler_release(kprof_profiler *p)
{
    if (!p->object)
        return;
    KPROF_CUPTI_PARAMS(params, RangeProfiler_Disable, .pRangeProfilerObject = p->object);
    (void)p->cupti->cuptiRangeProfilerDisable(&params);
    kprof_counting_release();
    p->object = NULL;
    p->next_pass = 0;
    p->failed = false;
}

void kprof_profiler_close(kprof_profiler *p)
{
    if (!p)
        return;
    retire_image(p);
    unmap_old_image(p);
    KPROF_FREE(p->names, p);
}

kprof_status kprof_reader_open(const kprof_chip_metrics *metrics, kprof_reader **out)
{
    *out = NULL;
    kprof_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return kprof_fail(KPROF_NO_MEMORY, "no memory to evaluate counters");
    kprof_status status = kprof_host_open_apart(metrics->chip, &reader->host);
    if (status != KPROF_OK) {
        free(reader);
        return status;
    }
    *out = reader;
    return KPROF_OK;
}

void kprof_reader_close(kprof_reader *reader)
{
    if (!reader)
        return;
    kprof_host_close(reader->host);
    free(reader);
}

kprof_status kprof_reader_read(kprof_reader *reader, kprof_range range, const kprof_strlist *names, double *values)
{
    const kprof_profiler *p = range.profiler;
    kprof_counter_data counters = {.data = p->image, .size = p->image_size, .range = range.index};
    return kprof_host_evaluate(reader->host, &counters, names, values);
}
