/* Three steps of a program, a millisecond apart. In each, as microseconds from its start:
 *
 *     host                                         GPU
 *     range "step"               0 ... 900
 *     range "forward" of "net" 100 ... 200, + 1 each, and in the last step it does not end
 *     cudaMemcpy                10 ... 100         copy of 1,000,000 pageable bytes to the device   20 ...  90
 *     cudaLaunchKernel         100 ... 104         vectorAdd                                       110 ... 310
 *     cudaLaunchKernel         105 ... 109         scale                                           310 ... 410, + 10
 * each cudaMemsetAsync          109 ... 112         set of 4,096 bytes                              430 ... 431
 *     cudaMemcpyAsync          112 ... 115         copy of 500,000 bytes to pinned memory          300 ... 350, stream
 * 8 cudaDeviceSynchronize    120 ... 440 cudaMalloc               450 ... 550         1,000,000 bytes cudaFree 560 ...
 * 580         those
 *
 * Each 100 us the SMs are busy for 10 % more, from 0 to 90 % in each step, and DRAM for half of that; two samples of
 * the second step are lost, and of DRAM the third one is not known. After the last step a kernel runs whose times are
 * not known, and 5 activities are lost. */
#include "trace_fixture.h"

#include "fixture.h"
#include "spool/activities.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define THREAD 4242

static const char *const names[] = {"_Z9vectorAddPKfS0_Pfi",
                                    "_Z5scaleIfEvPT_S0_i",
                                    "Host-to-Device",
                                    "Device-to-Host",
                                    "Pageable",
                                    "Pinned",
                                    "Device",
                                    "runtime",
                                    "cudaMemcpy",
                                    "cudaLaunchKernel",
                                    "cudaMemsetAsync",
                                    "cudaMemcpyAsync",
                                    "cudaDeviceSynchronize",
                                    "cudaMalloc",
                                    "cudaFree",
                                    "context",
                                    "allocation",
                                    "release",
                                    "step",
                                    "net",
                                    "PushPop",
                                    "forward",
                                    "StartEnd",
                                    "CPU page fault",
                                    "GPU page fault",
                                    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
                                    "dram__bytes_read.sum.pct_of_peak_sustained_elapsed"};

static struct {
    kprof_ingest *ingest;
    kprof_activity_history history;
    kprof_strbuf block;
    uint32_t count;
    int64_t base_ns; /* of the step */
    int64_t correlation;
} trace;

static int64_t name(const char *text)
{
    int64_t i = 0;
    while (strcmp(names[i], text) != 0)
        i++;
    return i + 1;
}

static void add(const kprof_activity *activity)
{
    kprof_activity_encode(&trace.history, activity, &trace.block);
    trace.count++;
}

static void add_call(const char *text, int64_t start_us, int64_t end_us)
{
    trace.correlation++;
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_CALL,
                          .call = {.start_ns = trace.base_ns + 1000 * start_us,
                                   .end_ns = trace.base_ns + 1000 * end_us,
                                   .thread = THREAD,
                                   .correlation = trace.correlation,
                                   .name = name(text),
                                   .layer = name("runtime")}});
}

/* end_us below 0: the times are not known. */
static void add_kernel(const char *text, int64_t start_us, int64_t end_us)
{
    kprof_activity activity = {.kind = KPROF_ACTIVITY_KERNEL};
    activity.kernel = (kprof_kernel_activity){.start_ns = end_us < 0 ? -1 : trace.base_ns + 1000 * start_us,
                                              .end_ns = end_us < 0 ? -1 : trace.base_ns + 1000 * end_us,
                                              .context = 1,
                                              .stream = 7,
                                              .correlation = trace.correlation,
                                              .graph = -1,
                                              .graph_node = -1,
                                              .name = name(text),
                                              .grid_x = 65536,
                                              .grid_y = 1,
                                              .grid_z = 1,
                                              .block_x = 256,
                                              .block_y = 1,
                                              .block_z = 1,
                                              .registers_per_thread = 32};
    add(&activity);
}

static void add_copy(bool to_device, int64_t start_us, int64_t end_us)
{
    kprof_activity activity = {.kind = KPROF_ACTIVITY_COPY};
    activity.copy = (kprof_copy_activity){.start_ns = trace.base_ns + 1000 * start_us,
                                          .end_ns = trace.base_ns + 1000 * end_us,
                                          .context = 1,
                                          .stream = to_device ? 7 : 8,
                                          .correlation = trace.correlation,
                                          .graph = -1,
                                          .graph_node = -1,
                                          .operation = name(to_device ? "Host-to-Device" : "Device-to-Host"),
                                          .source_memory = name(to_device ? "Pageable" : "Device"),
                                          .target_memory = name(to_device ? "Device" : "Pinned"),
                                          .source_device = -1,
                                          .target_device = -1,
                                          .bytes = to_device ? 1000000 : 500000,
                                          .is_async = !to_device};
    add(&activity);
}

static void add_memory(const char *operation, int64_t time_us)
{
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_MEMORY,
                          .memory = {.time_ns = trace.base_ns + 1000 * time_us,
                                     .context = 1,
                                     .stream = -1,
                                     .correlation = trace.correlation,
                                     .operation = name(operation),
                                     .memory = name("Device"),
                                     .address = 0x7f0000000000,
                                     .bytes = 1000000}});
}

static void add_step(int step)
{
    trace.base_ns = TRACE_START_NS + 1000000 * step;
    add_call("cudaMemcpy", 10, 100);
    add_copy(true, 20, 90);
    add_call("cudaLaunchKernel", 100, 104);
    add_kernel("_Z9vectorAddPKfS0_Pfi", 110, 310);
    add_call("cudaLaunchKernel", 105, 109);
    add_kernel("_Z5scaleIfEvPT_S0_i", 310, 410 + 10 * step);
    add_call("cudaMemsetAsync", 109, 112);
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_SET,
                          .set = {.start_ns = trace.base_ns + 430000,
                                  .end_ns = trace.base_ns + 431000,
                                  .context = 1,
                                  .stream = 7,
                                  .correlation = trace.correlation,
                                  .graph = -1,
                                  .graph_node = -1,
                                  .memory = name("Device"),
                                  .bytes = 4096}});
    add_call("cudaMemcpyAsync", 112, 115);
    add_copy(false, 300, 350);
    add_call("cudaDeviceSynchronize", 120, 440);
    add_call("cudaMalloc", 450, 550);
    add_memory("allocation", 550);
    add_call("cudaFree", 560, 580);
    add_memory("release", 580);
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_RANGE,
                          .range = {.start_ns = trace.base_ns,
                                    .end_ns = trace.base_ns + 900000,
                                    .thread = THREAD,
                                    .end_thread = THREAD,
                                    .name = name("step"),
                                    .style = name("PushPop")}});
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_RANGE,
                          .range = {.start_ns = trace.base_ns + 100000,
                                    .end_ns = step == 2 ? -1 : trace.base_ns + 200000 + 1000 * step,
                                    .thread = THREAD,
                                    .end_thread = THREAD,
                                    .name = name("forward"),
                                    .domain = name("net"),
                                    .style = name("StartEnd")}});
}

static void add_managed(const char *operation, kprof_managed_activity what)
{
    what.operation = name(operation);
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_MANAGED, .managed = what});
}

/* In each step a page's block moves to the GPU in 100 us, after 3 faults there, and the host wants it once more. */
static void add_managed_memory(int step)
{
    const int64_t start_ns = TRACE_START_NS + 1000000 * step, address = 0x7f0000000000 + 65536 * (step % 2);
    add_managed("GPU page fault", (kprof_managed_activity){start_ns, start_ns + 5000, 0, address, -1, 3, -1, 0, -1});
    add_managed("Host-to-Device",
                (kprof_managed_activity){start_ns, start_ns + 100000, 0, address, 2000000 * (step + 1), -1, -1, -1, 0});
    add_managed("CPU page fault", (kprof_managed_activity){start_ns + 200000, -1, 0, address + 4096, -1, -1,
                                                           step == 2 ? 0x401010 : 0x401000, -1, -1});
    if (step == 2)
        add_managed("Device-to-Host",
                    (kprof_managed_activity){start_ns + 200000, start_ns + 250000, 0, address, 500000, -1, -1, 0, -1});
}

static void add_sample(const char *metric, int64_t start_ns, int64_t value_millionths)
{
    add(&(kprof_activity){.kind = KPROF_ACTIVITY_SAMPLE,
                          .sample = {.start_ns = start_ns,
                                     .end_ns = start_ns + 100000,
                                     .name = name(metric),
                                     .value_millionths = value_millionths}});
}

static void add_samples(void)
{
    for (int64_t i = 0; i < (int64_t)10 * TRACE_STEPS; i++) {
        const int64_t start_ns = TRACE_START_NS + 100000 * i, busy = i % 10 * 10000000;
        if (i == 15 || i == 16)
            continue;
        add_sample("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", start_ns, busy);
        add_sample("dram__bytes_read.sum.pct_of_peak_sustained_elapsed", start_ns, i == 2 ? -1 : busy / 2);
    }
}

static void store_trace(void)
{
    kprof_record record = {.type = KPROF_RECORD_PROCESS};
    record.process =
        (kprof_process_record){4242, 4200, TRACE_START_NS - 1000000, "gpu-host", "/home/user/train", "./train"};
    fixture_store(trace.ingest, &record);
    record = (kprof_record){.type = KPROF_RECORD_DEVICE, .device = fixture_device()};
    fixture_store(trace.ingest, &record);
    fixture_store(trace.ingest, &(kprof_record){.type = KPROF_RECORD_TRACE, .trace = {TRACE_START_NS - 500000}});
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        fixture_store(trace.ingest, &(kprof_record){.type = KPROF_RECORD_NAME, .name = {i + 1, i < 2, names[i]}});
    for (int i = 0; i < TRACE_STEPS; i++)
        add_step(i);
    for (int i = 0; i < TRACE_STEPS; i++)
        add_managed_memory(i);
    add_samples();
    add_call("cudaLaunchKernel", 600, 604);
    add_kernel("_Z9vectorAddPKfS0_Pfi", 0, -1);
    record = (kprof_record){.type = KPROF_RECORD_ACTIVITIES};
    record.activities = (kprof_activities_record){trace.count, (uint32_t)trace.block.length, trace.block.data};
    fixture_store(trace.ingest, &record);
    fixture_store(trace.ingest,
                  &(kprof_record){.type = KPROF_RECORD_TRACED, .traced = {TRACE_START_NS + 3000000, 5, 0, ""}});
    fixture_store(trace.ingest, &(kprof_record){.type = KPROF_RECORD_END, .end = {7, 0, 0}});
}

/* As kprof trace --pm-sampling plans them. */
static void add_plan(kprof_report *report)
{
    char chip[] = "GH100", id[] = "ProgramUtilization", title[] = "Program Utilization", unit[] = "%",
         busy[] = "SMs Busy", dram[] = "DRAM Read", active[] = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
         bytes[] = "dram__bytes_read.sum.pct_of_peak_sustained_elapsed";
    kprof_item items[] = {{.name = active, .label = busy, .unit = unit}, {.name = bytes, .label = dram, .unit = unit}};
    kprof_section section = {.id = id, .name = title, .timeline = items, .timeline_count = 2};
    const kprof_plan plan = {.chip = chip, .sections = &section, .section_count = 1};
    assert_int_equal(kprof_report_add_plan(report, &plan, NULL), KPROF_OK);
}

void trace_fixture_write(const char *path)
{
    static const char *const sets[] = {NULL};
    kprof_run_info run = {"kprof trace ./train", "/home/user", "0.1.0", sets, TRACE_START_NS - 2000000};
    kprof_report *report = NULL;
    memset(&trace, 0, sizeof trace);
    unlink(path);
    assert_int_equal(kprof_report_create(path, KPROF_CREATE_NEW, &run, &report), KPROF_OK);
    add_plan(report);
    assert_int_equal(kprof_report_begin(report), KPROF_OK);
    trace.ingest = kprof_ingest_new(report);
    store_trace();
    kprof_ingest_free(trace.ingest);
    assert_int_equal(kprof_report_set_exit(report, 4242, 0), KPROF_OK);
    assert_int_equal(kprof_report_commit(report), KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    kprof_strbuf_free(&trace.block);
}
