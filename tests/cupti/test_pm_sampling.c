/* Samples over time over functions that stand in for CUPTI's, and refuse any other order of calls than the documented
 * one. */
#include "cupti/pm_sampling.h"
#include "cupti/profiler.h"
#include "host/host.h"
#include "host/load.h"
#include "log_capture.h"
#include "test.h"

#include <math.h>
#include <string.h>

/* An image is a head of one byte and a block for each sample. */
#define SAMPLE_BYTES 7
#define MOST_SAMPLES 9

static log_capture log_seen;
static int object_place, host_place;

static struct {
    bool enabled, configured, runs, stopped;
    unsigned enables, configs, images, hosts;
    size_t space;       /* samples of the image */
    size_t image_bytes; /* of it */
    uint64_t interval;
    size_t buffer;
    CUpti_PmSampling_TriggerMode trigger;
    CUptiResult enable, set_config, start, stop, decode, disable, info;
    unsigned others; /* so many calls decode a part */
    bool full, overflow;
    size_t samples;
    bool writes_last;  /* decoding writes the image's last sample, too, though none fell into it */
    size_t begin, end; /* the samples of a launch, but for the first of all */
    size_t gap;        /* one of them, in which the GPU is idle */
    size_t evaluated;  /* samples of a launch whose metrics all were */
} cupti;

#define OBJECT ((CUpti_PmSampling_Object *)&object_place)

static CUptiResult get_string(CUptiResult result, const char **text)
{
    *text = result == CUPTI_SUCCESS ? "fine" : "an error";
    return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_PmSampling_Enable_Params *p)
{
    assert_int_equal(p->structSize, CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
    assert_int_equal(p->deviceIndex, 3);
    assert_false(cupti.enabled);
    cupti.enables++;
    cupti.enabled = cupti.enable == CUPTI_SUCCESS;
    p->pPmSamplingObject = OBJECT;
    return cupti.enable;
}

static CUptiResult disable(CUpti_PmSampling_Disable_Params *p)
{
    assert_ptr_equal(p->pPmSamplingObject, OBJECT);
    assert_true(cupti.enabled && !cupti.runs);
    cupti.enabled = cupti.configured = false;
    return cupti.disable;
}

static CUptiResult set_config(CUpti_PmSampling_SetConfig_Params *p)
{
    assert_int_equal(p->structSize, CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
    assert_true(cupti.enabled && !cupti.runs && !cupti.configured); /* a second time would leave samples missing */
    assert_int_equal(p->configSize, 5);
    assert_memory_equal(p->pConfig, "image", 5);
    cupti.configs++;
    cupti.interval = p->samplingInterval;
    cupti.buffer = p->hardwareBufferSize;
    cupti.trigger = p->triggerMode;
    assert_int_equal(p->hwBufferAppendMode, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
    cupti.configured = cupti.set_config == CUPTI_SUCCESS;
    return cupti.set_config;
}

static CUptiResult get_size(CUpti_PmSampling_GetCounterDataSize_Params *p)
{
    assert_true(cupti.configured);
    assert_int_equal(p->numMetrics, 2);
    cupti.space = p->maxSamples;
    p->counterDataSize = 1 + p->maxSamples * SAMPLE_BYTES;
    return CUPTI_SUCCESS;
}

static CUptiResult initialize(CUpti_PmSampling_CounterDataImage_Initialize_Params *p)
{
    assert_true(cupti.configured);
    assert_int_equal(p->counterDataSize, 1 + cupti.space * SAMPLE_BYTES);
    cupti.image_bytes = p->counterDataSize;
    memset(p->pCounterData, 's', cupti.image_bytes);
    p->pCounterData[0] = 'e';
    cupti.images++;
    return CUPTI_SUCCESS;
}

static CUptiResult start(CUpti_PmSampling_Start_Params *p)
{
    assert_ptr_equal(p->pPmSamplingObject, OBJECT);
    assert_true(cupti.configured && !cupti.runs);
    cupti.runs = cupti.start == CUPTI_SUCCESS;
    return cupti.start;
}

static CUptiResult stop(CUpti_PmSampling_Stop_Params *p)
{
    assert_ptr_equal(p->pPmSamplingObject, OBJECT);
    assert_true(cupti.runs);
    cupti.runs = false;
    cupti.stopped = true;
    return cupti.stop;
}

/* An image must be as CUPTI began it for each reading: else samples of the reading before would be in it. */
static CUptiResult decode(CUpti_PmSampling_DecodeData_Params *p)
{
    assert_true(cupti.stopped || cupti.runs);
    assert_int_equal(p->counterDataImageSize, cupti.image_bytes);
    if (p->pCounterDataImage[0] == 'e')
        for (size_t i = 1; i < cupti.image_bytes; i++)
            assert_int_equal(p->pCounterDataImage[i], 's');
    else
        assert_int_equal(p->pCounterDataImage[0], 'p');
    p->pCounterDataImage[0] = cupti.others > 0 ? 'p' : 'd';
    const bool full = cupti.samples >= cupti.space;
    memset(p->pCounterDataImage + 1, 'x', (full ? cupti.space : cupti.samples + 1) * SAMPLE_BYTES);
    if (cupti.writes_last)
        p->pCounterDataImage[cupti.image_bytes - 1] = 'y';
    p->overflow = cupti.overflow;
    p->decodeStopReason = cupti.others > 0     ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER
                          : cupti.full || full ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                               : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
    cupti.others -= cupti.others > 0;
    return cupti.decode;
}

static CUptiResult get_info(CUpti_PmSampling_GetCounterDataInfo_Params *p)
{
    assert_true(p->pCounterDataImage[0] == 'd' || cupti.runs);
    p->numTotalSamples = KPROF_PM_MOST_SAMPLES;
    const bool full = cupti.samples >= cupti.space;
    p->numPopulatedSamples = full ? cupti.space : cupti.samples + 1;
    p->numCompletedSamples = full ? cupti.space : cupti.samples; /* the last one has not ended */
    return cupti.info;
}

static CUptiResult get_sample_info(CUpti_PmSampling_CounterData_GetSampleInfo_Params *p)
{
    assert_true(p->sampleIndex < cupti.samples);
    p->startTimestamp = 1000 + 500 * p->sampleIndex;
    p->endTimestamp = p->startTimestamp + 500;
    return CUPTI_SUCCESS;
}

static const kprof_cupti_api api = {
    .cuptiGetResultString = get_string,
    .cuptiPmSamplingEnable = enable,
    .cuptiPmSamplingDisable = disable,
    .cuptiPmSamplingSetConfig = set_config,
    .cuptiPmSamplingGetCounterDataSize = get_size,
    .cuptiPmSamplingCounterDataImageInitialize = initialize,
    .cuptiPmSamplingStart = start,
    .cuptiPmSamplingStop = stop,
    .cuptiPmSamplingDecodeData = decode,
    .cuptiPmSamplingGetCounterDataInfo = get_info,
    .cuptiPmSamplingCounterDataGetSampleInfo = get_sample_info,
};

kprof_status kprof_cupti_load(const kprof_cupti_api **out)
{
    *out = &api;
    return KPROF_OK;
}

kprof_status kprof_profilers_initialize(const struct kprof_cupti_api *unused)
{
    return KPROF_OK;
}

kprof_status kprof_cupti_fail(const struct kprof_cupti_api *unused, const char *operation, int failure)
{
    return kprof_fail(failure == CUPTI_ERROR_NOT_SUPPORTED ? KPROF_UNSUPPORTED : KPROF_INTERNAL, "%s: %d", operation,
                      failure);
}

kprof_status kprof_host_open_sampler(const char *chip, kprof_host **out)
{
    cupti.hosts++;
    *out = (kprof_host *)&host_place;
    return KPROF_OK;
}

void kprof_host_close(kprof_host *host)
{
    cupti.hosts -= host != NULL;
}

kprof_status kprof_host_evaluate(kprof_host *host, const kprof_counter_data *counters, const kprof_strlist *names,
                                 double *values)
{
    assert_ptr_equal(host, &host_place);
    if (cupti.end > 0) {
        const size_t i = counters->range;
        values[0] = i == 0 || (i >= cupti.begin && i < cupti.end && i != cupti.gap) ? 1 : 0;
        if (names->count == 2)
            values[1] = (double)i;
        cupti.evaluated += names->count == 2;
        return KPROF_OK;
    }
    assert_int_equal(names->count, 2);
    values[0] = (double)counters->range;
    values[1] = counters->range == 1 ? NAN : 10.0 * (double)counters->range;
    return KPROF_OK;
}

static char *names[] = {(char *)"activity", (char *)"metric"};
static const kprof_chip_timeline passes[] = {{{names, 2, 2}, {(uint8_t *)"image", 5}},
                                             {{names, 2, 2}, {(uint8_t *)"image", 5}}};

static int set_up(void **state)
{
    memset(&cupti, 0, sizeof cupti);
    cupti.samples = 3;
    log_capture_start(&log_seen);
    return 0;
}

static int tear_down(void **state)
{
    assert_false(cupti.runs);
    assert_int_equal(cupti.hosts, 0);
    return 0;
}

static kprof_pm_sampling *open_on(const char *chip)
{
    kprof_pm_sampling *s;
    assert_int_equal(kprof_pm_sampling_open(3, chip, &s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_enable(s), KPROF_OK);
    return s;
}

static void end(kprof_pm_sampling *s)
{
    assert_int_equal(kprof_pm_sampling_disable(s), KPROF_OK);
    assert_false(cupti.enabled);
    kprof_pm_sampling_close(s);
}

static kprof_status sample(kprof_pm_sampling *s, kprof_pm_data *data)
{
    kprof_status status = kprof_pm_sampling_start(s);
    if (status == KPROF_OK)
        status = kprof_pm_sampling_stop(s);
    return status == KPROF_OK ? kprof_pm_sampling_read(s, data) : status;
}

TEST(test_launches_have_samples_of_their_own)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 2000, 0, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(cupti.interval, 2000);
    assert_true(cupti.buffer > 0);
    assert_int_equal(cupti.trigger, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
    cupti.others = 2;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_int_equal(data.count, 3);
    assert_false(data.is_cut);
    assert_int_equal(data.starts_ns[2], 2000);
    assert_int_equal(data.ends_ns[2], 2500);
    assert_true(isnan(data.values[3]));
    assert_true(data.values[4] == 2 && data.values[5] == 20);
    cupti.samples = 1;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_int_equal(data.count, 1);
    end(s);
}

TEST(test_samples_are_read_while_they_come)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000000, 0, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    for (cupti.samples = 0; cupti.samples < 3; cupti.samples++) {
        assert_int_equal(kprof_pm_sampling_read(s, &data), KPROF_OK);
        assert_int_equal(data.count, cupti.samples);
    }
    assert_int_equal(kprof_pm_sampling_stop(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_read(s, &data), KPROF_OK);
    assert_int_equal(data.count, 3);
    end(s);
}

/* CUPTI makes an image blank again where kprof cannot tell what was written. */
TEST(test_an_image_is_made_once)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 2000, 0, MOST_SAMPLES}), KPROF_OK);
    for (size_t i = 0; i < 4; i++) {
        cupti.samples = i;
        assert_int_equal(sample(s, &data), KPROF_OK);
        assert_int_equal(data.count, i);
    }
    assert_int_equal(cupti.images, 1);
    cupti.writes_last = true;
    assert_int_equal(sample(s, &data), KPROF_OK);
    cupti.writes_last = false;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_int_equal(cupti.images, 2);
    cupti.decode = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(sample(s, &data), KPROF_INTERNAL);
    cupti.decode = CUPTI_SUCCESS;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_int_equal(cupti.images, 3);
    end(s);
}

/* What comes before and behind a launch is not evaluated. */
TEST(test_samples_of_a_launch_alone)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    cupti.samples = MOST_SAMPLES - 1;
    cupti.begin = 2;
    cupti.gap = 4;
    cupti.end = 6;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_stop(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_read_launch(s, 0, &data), KPROF_OK);
    assert_int_equal(data.count, 4);
    assert_false(data.is_cut);
    for (size_t i = 0; i < data.count; i++) {
        assert_int_equal(data.starts_ns[i], 1000 + 500 * (2 + i));
        assert_true(data.values[2 * i + 1] == (double)(2 + i));
    }
    assert_int_equal(cupti.evaluated, 4);
    cupti.begin = cupti.end = 1; /* there is none */
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_stop(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_read_launch(s, 0, &data), KPROF_OK);
    assert_int_equal(data.count, 0);
    end(s);
}

static void read_launch(kprof_pm_sampling *s, size_t expected, kprof_pm_data *data)
{
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_stop(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_read_launch(s, expected, data), KPROF_OK);
}

/* At 20 us, 2 and 8 samples more are allowed for. */
TEST(test_what_is_behind_a_launch_is_not_decoded)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    cupti.samples = 100;
    cupti.begin = 3;
    cupti.end = 7;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 20000, 0, 200}), KPROF_OK);
    read_launch(s, 4, &data);
    assert_true(data.count == 4 && !data.is_cut);
    assert_int_equal(cupti.space, 7 + 10 + 5); /* 150 us, as where the launch begins was not known */
    read_launch(s, 4, &data);
    assert_true(data.count == 4 && !data.is_cut);
    assert_int_equal(cupti.space, 3 + 10 + 5);
    cupti.end = 40;
    read_launch(s, 4, &data);
    assert_true(data.count == 15 && data.is_cut);
    for (int i = 0; i < 6; i++) { /* long and short ones in turn share an image */
        read_launch(s, i % 2 ? 4 : 40, &data);
        assert_int_equal(cupti.space, 3 + 10 + 50);
    }
    assert_int_equal(cupti.images, 3);
    read_launch(s, 0, &data);
    assert_true(data.count == 37 && !data.is_cut);
    assert_int_equal(cupti.space, 200);
    cupti.begin = 90;
    cupti.end = 95;
    read_launch(s, 4, &data);
    assert_true(data.count == 0 && data.is_cut); /* it may come later */
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[1], 20000, 0, 200}), KPROF_OK);
    read_launch(s, 4, &data);
    assert_true(data.count == 0 && data.is_cut);
    read_launch(s, 0, &data);
    assert_true(data.count == 5 && !data.is_cut);
    read_launch(s, 4, &data);
    assert_int_equal(cupti.space, 90 + 10 + 5);
    assert_true(data.count == 5 && !data.is_cut);
    end(s);
}

TEST(test_each_setup_has_an_object_of_its_own)
{
    kprof_pm_sampling *s = open_on("TU102");
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 4711, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(cupti.buffer, 4711);
    assert_int_equal(cupti.trigger, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 5000, 4711, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[1], 5000, 4711, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(cupti.enables, 3);
    assert_int_equal(cupti.configs, 3);
    end(s);
}

TEST(test_more_samples_than_the_buffers_hold)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}), KPROF_OK);
    cupti.full = true;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_true(data.is_cut && data.count == 3);
    cupti.full = false;
    cupti.overflow = true;
    assert_int_equal(sample(s, &data), KPROF_OK);
    assert_true(data.is_cut);
    cupti.decode = CUPTI_ERROR_OUT_OF_MEMORY;
    assert_int_equal(sample(s, &data), KPROF_NOT_COLLECTED);
    assert_non_null(strstr(log_seen.last, "--pm-sampling-buffer-size"));
    end(s);
}

TEST(test_decoding_ends)
{
    kprof_pm_sampling *s = open_on("GH100");
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}), KPROF_OK);
    cupti.others = 1000000;
    assert_int_equal(sample(s, &data), KPROF_NOT_COLLECTED);
    assert_int_equal(data.count, 0);
    cupti.others = 1; /* while samples run, the next reading has the rest */
    cupti.samples = 2;
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_read(s, &data), KPROF_OK);
    assert_true(data.count == 2 && !data.is_cut);
    assert_int_equal(kprof_pm_sampling_stop(s), KPROF_OK);
    end(s);
}

TEST(test_what_cupti_refuses_is_told)
{
    kprof_pm_sampling *s;
    kprof_pm_data data;
    assert_int_equal(kprof_pm_sampling_open(3, "GH100", &s), KPROF_OK);
    cupti.enable = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    assert_int_equal(kprof_pm_sampling_enable(s), KPROF_INTERNAL);
    assert_int_equal(kprof_pm_sampling_disable(s), KPROF_OK); /* there is nothing to disable */
    cupti.enable = CUPTI_SUCCESS;
    assert_int_equal(kprof_pm_sampling_enable(s), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_enable(s), KPROF_OK);
    assert_int_equal(cupti.enables, 2);
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_INTERNAL);
    cupti.set_config = CUPTI_ERROR_NOT_SUPPORTED; /* the pass is several */
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}),
                     KPROF_UNSUPPORTED);
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_INTERNAL);
    cupti.set_config = CUPTI_ERROR_HARDWARE_BUSY;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}),
                     KPROF_COUNTERS_BUSY);
    cupti.set_config = CUPTI_SUCCESS;
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}), KPROF_OK);
    cupti.info = CUPTI_ERROR_UNKNOWN;
    assert_int_equal(sample(s, &data), KPROF_INTERNAL);
    assert_int_equal(data.count, 0);
    end(s);
}

TEST(test_disabling_stops_what_runs)
{
    kprof_pm_sampling *s = open_on("GH100");
    assert_int_equal(kprof_pm_sampling_configure(s, &(kprof_pm_setup){&passes[0], 1000, 0, MOST_SAMPLES}), KPROF_OK);
    assert_int_equal(kprof_pm_sampling_start(s), KPROF_OK);
    end(s);
    kprof_pm_sampling_close(NULL);
}

AROUND_EACH(set_up, tear_down)
