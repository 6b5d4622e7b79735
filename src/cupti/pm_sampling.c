/* Samples counters over time with CUPTI's PM sampling: the one object of a device, configured for one pass at a time.
 */
#include "cupti/pm_sampling.h"

#include "core/log.h"
#include "core/monotonic.h"
#include "cupti/blank.h"
#include "cupti/profiler.h"
#include "host/host.h"
#include "host/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The GPU keeps records of samples here until they are decoded. */
#define HARDWARE_BUFFER_BYTES ((size_t)64 << 20)

/* Launches begin about this long after the first sample. There is space for those that begin later than the one before,
 * and for the end of those that take longer. */
#define LEAD_NS       150000
#define SLACK_NS      40000
#define SLACK_SAMPLES 8

/* CUPTI may stop decoding before the last record. If it has said so this often, something is wrong. */
#define MOST_DECODES 64

/* Tells with --verbose what takes the time. */
typedef struct spent {
    double enabling_ms, configuring_ms, starting_ms, stopping_ms, fitting_ms, decoding_ms, finding_ms, evaluating_ms;
    size_t readings;
} spent;

struct kprof_pm_sampling {
    const kprof_cupti_api *cupti;
    uint32_t device;
    bool counts_cycles; /* the chip has no trigger by time */
    kprof_host *host;
    CUpti_PmSampling_Object *object; /* NULL: not enabled */
    bool is_used;                    /* it has been configured */
    const kprof_chip_timeline *pass; /* NULL: not configured */
    uint8_t *image;                  /* [image_size]: counter data */
    size_t image_size;
    size_t capacity;    /* samples for which it has space */
    kprof_blank *blank; /* the image as CUPTI made it; NULL: not known */
    bool is_blank;      /* nothing has been decoded into it */
    size_t used;        /* samples that have been */
    size_t most;        /* samples, as the caller has it */
    size_t slack;       /* samples */
    size_t largest;     /* samples that a launch has wanted */
    size_t lead;        /* samples before the last launch that was read; SIZE_MAX: none was */
    size_t guess;       /* in place of it */
    bool runs;
    uint64_t *starts_ns, *ends_ns; /* [KPROF_PM_MOST_SAMPLES] */
    double *values;                /* [KPROF_PM_MOST_SAMPLES][pass->metrics.count] */
    spent spent;                   /* since it was enabled */
};

/* Declare the parameters `p` of a function, and call it. */
#define PARAMS(p, name, ...)      KPROF_CUPTI_PARAMS(p, PmSampling_##name, __VA_ARGS__)
#define CALL(s, function, params) check((s), #function, (s)->cupti->function(&(params)))

static kprof_status check(const kprof_pm_sampling *s, const char *operation, CUptiResult result)
{
    if (result == CUPTI_ERROR_HARDWARE_BUSY) /* passes had the counters just before: another tool is not likely */
        return kprof_fail(KPROF_COUNTERS_BUSY,
                          "samples over time find the GPU's counters in use (%s), by kprof itself or by another tool",
                          operation);
    return kprof_cupti_check(s->cupti, operation, result);
}

kprof_status kprof_pm_sampling_open(uint32_t device, const char *chip, kprof_pm_sampling **out)
{
    kprof_pm_sampling *s = *out = calloc(1, sizeof *s);
    if (!s)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for samples over time");
    s->device = device;
    s->counts_cycles = kprof_begins_with(chip, "TU") || strcmp(chip, "GA100") == 0; /* as cupti_pmsampling.h has it */
    s->starts_ns = calloc(KPROF_PM_MOST_SAMPLES, sizeof *s->starts_ns);
    s->ends_ns = calloc(KPROF_PM_MOST_SAMPLES, sizeof *s->ends_ns);
    kprof_status status = s->starts_ns && s->ends_ns ? kprof_cupti_load(&s->cupti)
                                                     : kprof_fail(KPROF_NO_MEMORY, "no memory for samples over time");
    KPROF_THEN(status, kprof_profilers_initialize(s->cupti));
    KPROF_THEN(status, kprof_host_open_sampler(chip, &s->host));
    if (status != KPROF_OK) {
        kprof_pm_sampling_close(s);
        *out = NULL;
    }
    return status;
}

kprof_status kprof_pm_sampling_enable(kprof_pm_sampling *s)
{
    PARAMS(params, Enable, .deviceIndex = s->device);
    int64_t at_ns = kprof_monotonic_ns();
    if (s->object)
        return KPROF_OK;
    kprof_status status = CALL(s, cuptiPmSamplingEnable, params);
    s->spent.enabling_ms += kprof_monotonic_lap_ms(&at_ns);
    s->object = status == KPROF_OK ? params.pPmSamplingObject : NULL;
    s->is_used = false;
    s->pass = NULL;
    return status;
}

static void tell_spent(kprof_pm_sampling *s, double disabling_ms)
{
    const spent *of = &s->spent;
    if (of->readings > 0)
        kprof_log(KPROF_LOG_DEBUG,
                  "samples over time, %zu readings, ms: enabling %.1f, configuring %.1f, starting %.1f, stopping %.1f, "
                  "making images %.1f, decoding %.1f, finding launches %.1f, evaluating %.1f, disabling %.1f",
                  of->readings, of->enabling_ms, of->configuring_ms, of->starting_ms, of->stopping_ms, of->fitting_ms,
                  of->decoding_ms, of->finding_ms, of->evaluating_ms, disabling_ms);
    s->spent = (spent){0};
}

kprof_status kprof_pm_sampling_disable(kprof_pm_sampling *s)
{
    PARAMS(params, Disable, .pPmSamplingObject = s->object);
    int64_t at_ns = kprof_monotonic_ns();
    if (!s->object)
        return KPROF_OK;
    if (s->runs && kprof_pm_sampling_stop(s) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "samples over time could not be stopped");
    s->object = NULL;
    s->pass = NULL;
    const CUptiResult result = s->cupti->cuptiPmSamplingDisable(&params);
    tell_spent(s, kprof_monotonic_lap_ms(&at_ns));
    return check(s, "cuptiPmSamplingDisable", result);
}

static kprof_status set_config(const kprof_pm_sampling *s, const kprof_pm_setup *setup)
{
    PARAMS(params, SetConfig, .pPmSamplingObject = s->object, .configSize = setup->pass->image.size,
           .pConfig = setup->pass->image.data,
           .hardwareBufferSize = setup->buffer_bytes ? setup->buffer_bytes : HARDWARE_BUFFER_BYTES,
           .samplingInterval = setup->interval_ns,
           .triggerMode = s->counts_cycles ? CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL
                                           : CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL,
           .hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
    return CALL(s, cuptiPmSamplingSetConfig, params);
}

static void drop_image(kprof_pm_sampling *s)
{
    kprof_blank_free(s->blank);
    free(s->image);
    s->blank = NULL;
    s->image = NULL;
    s->image_size = s->capacity = 0;
}

static kprof_status measure_image(const kprof_pm_sampling *s, const kprof_chip_timeline *pass, size_t samples,
                                  size_t *size)
{
    PARAMS(params, GetCounterDataSize, .pPmSamplingObject = s->object,
           .pMetricNames = (const char **)pass->metrics.items, .numMetrics = pass->metrics.count,
           .maxSamples = samples);
    kprof_status status = CALL(s, cuptiPmSamplingGetCounterDataSize, params);
    *size = params.counterDataSize;
    return status;
}

static kprof_status initialize_image(kprof_pm_sampling *s)
{
    PARAMS(params, CounterDataImage_Initialize, .pPmSamplingObject = s->object, .counterDataSize = s->image_size,
           .pCounterData = s->image);
    kprof_status status = CALL(s, cuptiPmSamplingCounterDataImageInitialize, params);
    s->is_blank = status == KPROF_OK;
    return status;
}

/* Make the image for this many samples, if it has no space for them, or space for more than twice as many. */
static kprof_status fit_image(kprof_pm_sampling *s, const kprof_chip_timeline *pass, size_t samples)
{
    size_t one = 0, two = 0;
    if (samples <= s->capacity && samples > s->capacity / 2)
        return KPROF_OK;
    drop_image(s);
    kprof_status status = measure_image(s, pass, 1, &one);
    KPROF_THEN(status, measure_image(s, pass, 2, &two));
    KPROF_THEN(status,
               measure_image(s, pass, samples, &s->image_size)); /* last: CUPTI may keep what it was asked for */
    if (status != KPROF_OK)
        return status;
    s->image = calloc(1, s->image_size + 1);
    if (!s->image)
        return kprof_fail(KPROF_NO_MEMORY, "no memory for samples over time");
    status = initialize_image(s);
    if (status == KPROF_OK)
        s->capacity = samples;
    if (status == KPROF_OK && two > one)
        s->blank = kprof_blank_keep(s->image, s->image_size, samples, two - one);
    return status;
}

static kprof_status make_values(kprof_pm_sampling *s, const kprof_chip_timeline *pass)
{
    free(s->values);
    s->values = calloc(KPROF_PM_MOST_SAMPLES, pass->metrics.count * sizeof *s->values);
    return s->values ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "no memory for samples over time");
}

/* On an H200, all samples of an object that was configured a second time were missing. */
static kprof_status take_new_object(kprof_pm_sampling *s)
{
    kprof_status status = s->is_used ? kprof_pm_sampling_disable(s) : KPROF_OK;
    KPROF_THEN(status, kprof_pm_sampling_enable(s));
    s->is_used = true;
    return status;
}

kprof_status kprof_pm_sampling_configure(kprof_pm_sampling *s, const kprof_pm_setup *setup)
{
    s->pass = NULL;
    s->most = setup->most_samples;
    s->slack = SLACK_SAMPLES + SLACK_NS / setup->interval_ns;
    s->lead = SIZE_MAX;
    s->guess = LEAD_NS / setup->interval_ns;
    s->largest = 0;
    drop_image(s); /* that of another pass */
    kprof_status status = take_new_object(s);
    int64_t at_ns = kprof_monotonic_ns();
    KPROF_THEN(status, set_config(s, setup));
    s->spent.configuring_ms += kprof_monotonic_lap_ms(&at_ns);
    KPROF_THEN(status, make_values(s, setup->pass));
    if (status == KPROF_OK)
        s->pass = setup->pass;
    return status;
}

kprof_status kprof_pm_sampling_start(kprof_pm_sampling *s)
{
    PARAMS(params, Start, .pPmSamplingObject = s->object);
    if (!s->pass)
        return kprof_fail(KPROF_INTERNAL, "samples over time are started that are not configured");
    int64_t at_ns = kprof_monotonic_ns();
    kprof_status status = CALL(s, cuptiPmSamplingStart, params);
    s->spent.starting_ms += kprof_monotonic_lap_ms(&at_ns);
    s->runs = status == KPROF_OK;
    return status;
}

kprof_status kprof_pm_sampling_stop(kprof_pm_sampling *s)
{
    PARAMS(params, Stop, .pPmSamplingObject = s->object);
    int64_t at_ns = kprof_monotonic_ns();
    s->runs = false;
    const CUptiResult result = s->cupti->cuptiPmSamplingStop(&params);
    s->spent.stopping_ms += kprof_monotonic_lap_ms(&at_ns);
    return check(s, "cuptiPmSamplingStop", result);
}

/* CUPTI decodes into one image as long as that has space, and forgets the samples that have none: on an H200, nothing
 * came into a further image. While samples run, one call is a reading, and the next one goes on from there. */
static kprof_status decode(kprof_pm_sampling *s, bool *is_cut, CUpti_PmSampling_DecodeStopReason *reason)
{
    const bool is_blank = s->is_blank || (s->blank && kprof_blank_restore(s->blank, s->image, s->used));
    kprof_status status = is_blank ? KPROF_OK : initialize_image(s);
    *reason = CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER;
    s->is_blank = false;
    s->used = SIZE_MAX; /* until it is known */
    for (int left = s->runs ? 1 : MOST_DECODES;
         left > 0 && status == KPROF_OK && *reason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER; left--) {
        PARAMS(params, DecodeData, .pPmSamplingObject = s->object, .pCounterDataImage = s->image,
               .counterDataImageSize = s->image_size);
        const CUptiResult result = s->cupti->cuptiPmSamplingDecodeData(&params);
        if (result == CUPTI_ERROR_OUT_OF_MEMORY)
            return kprof_fail(KPROF_NOT_COLLECTED, "there are more samples over time than the GPU's buffer holds: "
                                                   "give a larger --pm-sampling-buffer-size or --pm-sampling-interval");
        status = check(s, "cuptiPmSamplingDecodeData", result);
        *reason = params.decodeStopReason;
        *is_cut = *is_cut || params.overflow;
    }
    *is_cut = *is_cut || *reason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
    return status;
}

/* Decode, and tell how many of the image's samples are complete. */
static kprof_status fill_image(kprof_pm_sampling *s, size_t *completed, bool *is_cut)
{
    PARAMS(info, GetCounterDataInfo, .pCounterDataImage = s->image, .counterDataImageSize = s->image_size);
    CUpti_PmSampling_DecodeStopReason reason;
    kprof_status status = decode(s, is_cut, &reason);
    if (status == KPROF_OK && reason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER && !s->runs)
        status = kprof_fail(KPROF_NOT_COLLECTED, "CUPTI did not decode all samples over time");
    KPROF_THEN(status, CALL(s, cuptiPmSamplingGetCounterDataInfo, info));
    if (status != KPROF_OK)
        return status;
    s->used = info.numPopulatedSamples;
    *completed = info.numCompletedSamples;
    return KPROF_OK;
}

/* Write the values of the first `count` names of a sample of the image. */
static kprof_status evaluate(const kprof_pm_sampling *s, size_t sample, size_t count, double *values)
{
    const kprof_counter_data counters = {.data = s->image, .size = s->image_size, .range = sample};
    const kprof_strlist names = {.items = s->pass->metrics.items, .count = count};
    return kprof_host_evaluate(s->host, &counters, &names, values);
}

/* Append a sample of the image to those that were read. */
static kprof_status append(kprof_pm_sampling *s, size_t sample, kprof_pm_data *out)
{
    PARAMS(params, CounterData_GetSampleInfo, .pPmSamplingObject = s->object, .pCounterDataImage = s->image,
           .counterDataImageSize = s->image_size, .sampleIndex = sample);
    const size_t names = s->pass->metrics.count;
    if (out->count == KPROF_PM_MOST_SAMPLES) {
        out->is_cut = true;
        return KPROF_OK;
    }
    kprof_status status = CALL(s, cuptiPmSamplingCounterDataGetSampleInfo, params);
    if (status != KPROF_OK)
        return status;
    s->starts_ns[out->count] = params.startTimestamp;
    s->ends_ns[out->count] = params.endTimestamp;
    return evaluate(s, sample, names, s->values + out->count++ * names);
}

kprof_status kprof_pm_sampling_read(kprof_pm_sampling *s, kprof_pm_data *out)
{
    size_t completed = 0;
    *out = (kprof_pm_data){.starts_ns = s->starts_ns, .ends_ns = s->ends_ns, .values = s->values};
    kprof_status status = fit_image(s, s->pass, s->most);
    KPROF_THEN(status, fill_image(s, &completed, &out->is_cut));
    for (size_t i = 0; i < completed && status == KPROF_OK; i++)
        status = append(s, i, out);
    return status;
}

/* Find the launch's samples in the image: [first, end). CUPTI's first of all has what was counted before it. */
static kprof_status find_launch(const kprof_pm_sampling *s, size_t completed, size_t *first, size_t *end)
{
    kprof_status status = KPROF_OK;
    *first = *end = 0;
    for (size_t i = 1; i < completed && status == KPROF_OK; i++) {
        double activity = NAN;
        status = evaluate(s, i, 1, &activity);
        if (!(activity > 0)) /* or not known */
            continue;
        *first = *end > 0 ? *first : i;
        *end = i + 1;
    }
    return status;
}

/* Samples behind the launch, as a rule 0.3 ms, are not decoded if the image has no space for them. */
static size_t count_wanted(kprof_pm_sampling *s, size_t expected)
{
    const size_t of_launch = s->slack + expected + expected / 4;
    if (expected == 0)
        return s->most;
    if (s->lead == SIZE_MAX)
        return s->guess + of_launch < s->most ? s->guess + of_launch : s->most;
    if (s->largest == 0)
        s->capacity = 0; /* the image was made for a guess */
    if (s->lead + of_launch > s->largest)
        s->largest = s->lead + of_launch; /* so that no image is made for each launch */
    return s->largest < s->most ? s->largest : s->most;
}

kprof_status kprof_pm_sampling_read_launch(kprof_pm_sampling *s, size_t expected, kprof_pm_data *out)
{
    size_t completed = 0, first = 0, end = 0;
    int64_t at_ns = kprof_monotonic_ns();
    *out = (kprof_pm_data){.starts_ns = s->starts_ns, .ends_ns = s->ends_ns, .values = s->values};
    kprof_status status = fit_image(s, s->pass, count_wanted(s, expected));
    s->spent.fitting_ms += kprof_monotonic_lap_ms(&at_ns);
    KPROF_THEN(status, fill_image(s, &completed, &out->is_cut));
    s->spent.readings++;
    s->spent.decoding_ms += kprof_monotonic_lap_ms(&at_ns);
    KPROF_THEN(status, find_launch(s, completed, &first, &end));
    s->spent.finding_ms += kprof_monotonic_lap_ms(&at_ns);
    if (end > 0) {
        s->lead = first;
        out->is_cut = out->is_cut && end == completed;
    }
    for (size_t i = first; i < end && status == KPROF_OK; i++)
        status = append(s, i, out);
    s->spent.evaluating_ms += kprof_monotonic_lap_ms(&at_ns);
    return status;
}

void kprof_pm_sampling_close(kprof_pm_sampling *s)
{
    if (!s)
        return;
    drop_image(s);
    kprof_host_close(s->host);
    KPROF_FREE(s->starts_ns, s->ends_ns, s->values, s);
}
