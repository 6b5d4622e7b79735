/* An injection library over a simulated device: reads the real configuration, asks the real filter and writes the real
 * spool, but invents the values. The application calls kprof_sim_launch where CUDA's driver would call back.
 * KPROF_SIM_FAULT makes it fail: "busy" or "permission" (no launch is measured, and a message says which), "unmeasured"
 * (no launch is measured, each says why), "damage" (garbage follows the records). KPROF_SIM_MS is the time per launch.
 */
#include "core/config.h"
#include "core/log.h"
#include "spool/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT      __attribute__((visibility("default")))
#define MAX_KERNELS 64

int InitializeInjection(void);
void kprof_sim_launch(const char *mangled, unsigned device);

static struct {
    bool armed;
    kprof_config config;
    kprof_filter *filter;
    kprof_spool_writer *writer;
    char *kernels[MAX_KERNELS];
    uint64_t counts[MAX_KERNELS];
    uint32_t kernel_count;
    double *values; /* [config.chips[0].metrics.count] */
    uint64_t launches, matched, profiled;
} sim;

static void write_record(const kprof_record *record)
{
    if (sim.armed && kprof_spool_write(sim.writer, record) != KPROF_OK)
        sim.armed = false;
}

static void write_message(kprof_log_level level, kprof_status status, const char *text)
{
    kprof_record record = {.type = KPROF_RECORD_MESSAGE, .message = {level, status, text}};
    write_record(&record);
}

static void log_to_spool(void *user, kprof_log_level level, const char *message)
{
    (void)user;
    write_message(level, level == KPROF_LOG_ERROR ? KPROF_INTERNAL : KPROF_OK, message);
}

static int64_t now_unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void write_process(void)
{
    char host[256] = "", executable[4096] = "", command_line[4096] = "";
    if (gethostname(host, sizeof host - 1) != 0 || readlink("/proc/self/exe", executable, sizeof executable - 1) < 0)
        return;
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, command_line, sizeof command_line - 1);
    close(file);
    for (ssize_t i = 0; i + 1 < length; i++)
        command_line[i] = command_line[i] ? command_line[i] : ' ';
    kprof_record record = {.type = KPROF_RECORD_PROCESS,
                           .process = {getpid(), getppid(), now_unix_ns(), host, executable, command_line}};
    write_record(&record);
}

static void write_device(void)
{
    kprof_record record = {.type = KPROF_RECORD_DEVICE,
                           .device = {.name = "Simulated H200",
                                      .chip = "GH100",
                                      .uuid = "00112233445566778899aabbccddeeff",
                                      .cc_major = 9,
                                      .sm_count = 132,
                                      .sm_clock_max_khz = 1980000,
                                      .memory_clock_max_khz = 3201000,
                                      .memory_bytes = UINT64_C(150754820096),
                                      .l2_bytes = 62914560,
                                      .memory_bus_bits = 6144,
                                      .driver_version = 13000,
                                      .cupti_version = 130000,
                                      .max_threads_per_sm = 2048,
                                      .max_blocks_per_sm = 32,
                                      .max_registers_per_sm = 65536,
                                      .max_registers_per_block = 65536,
                                      .max_smem_per_sm_bytes = 233472,
                                      .max_smem_per_block_bytes = 49152,
                                      .max_smem_per_block_optin_bytes = 232448,
                                      .reserved_smem_per_block_bytes = 1024,
                                      .warp_size = 32}};
    write_record(&record);
}

static void write_metrics(void)
{
    const kprof_chip_metrics *chip = &sim.config.chips[0];
    kprof_record record = {.type = KPROF_RECORD_METRICS,
                           .metrics = {chip->chip, chip->pass_count, (uint32_t)chip->metrics.count,
                                       (const char *const *)chip->metrics.items}};
    write_record(&record);
}

static uint32_t number_kernel(const char *mangled)
{
    for (uint32_t i = 0; i < sim.kernel_count; i++) {
        if (strcmp(sim.kernels[i], mangled) == 0)
            return i + 1;
    }
    if (sim.kernel_count == MAX_KERNELS)
        return MAX_KERNELS;
    sim.kernels[sim.kernel_count++] = strdup(mangled);
    kprof_record record = {.type = KPROF_RECORD_KERNEL,
                           .kernel = {.kernel = sim.kernel_count,
                                      .mangled = mangled,
                                      .registers_per_thread = 16,
                                      .max_threads_per_block = 1024,
                                      .binary_version = 90,
                                      .ptx_version = 90}};
    write_record(&record);
    return sim.kernel_count;
}

static void write_progress(uint32_t kernel, uint32_t pass)
{
    kprof_record record = {.type = KPROF_RECORD_PROGRESS,
                           .progress = {kernel, sim.launches, sim.profiled, pass, sim.config.chips[0].pass_count}};
    write_record(&record);
}

static const char *fault(void)
{
    const char *name = getenv("KPROF_SIM_FAULT");
    return name ? name : "";
}

/* Why launches are not measured; "" when they are. */
static const char *unmeasured_reason(void)
{
    if (strcmp(fault(), "busy") == 0)
        return "the counters are busy (simulated)";
    if (strcmp(fault(), "permission") == 0)
        return "no permission (simulated)";
    return strcmp(fault(), "unmeasured") == 0 ? "the simulated device would not" : "";
}

static void take_time(uint32_t kernel)
{
    const char *text = getenv("KPROF_SIM_MS");
    long ms = text ? atol(text) : 0;
    struct timespec half = {ms / 2000, ms / 2 % 1000 * 1000000};
    for (uint32_t pass = 1; pass <= 2 && ms > 0; pass++) {
        write_progress(kernel, pass);
        nanosleep(&half, NULL);
    }
}

static void write_launch(uint32_t kernel, unsigned device)
{
    const kprof_chip_metrics *chip = &sim.config.chips[0];
    bool measured = unmeasured_reason()[0] == '\0';
    take_time(kernel);
    kprof_record record = {.type = KPROF_RECORD_LAUNCH,
                           .launch = {.launch = sim.launches,
                                      .kernel = kernel,
                                      .device = device,
                                      .context = 1,
                                      .stream = 7,
                                      .thread = getpid(),
                                      .grid = {65536, 1, 1},
                                      .block = {256, 1, 1},
                                      .max_blocks_per_sm = 8,
                                      .start_unix_ns = now_unix_ns(),
                                      .profile_ns = 1000000,
                                      .mode = measured ? KPROF_REPLAY_CUPTI_KERNEL : KPROF_REPLAY_NONE,
                                      .pass_count = measured ? chip->pass_count : 0,
                                      .reason = unmeasured_reason(),
                                      .value_count = measured ? (uint32_t)chip->metrics.count : 0,
                                      .values = measured ? sim.values : NULL}};
    write_record(&record);
    sim.matched++;
    sim.profiled += measured;
}

EXPORT void kprof_sim_launch(const char *mangled, unsigned device)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    if (!sim.armed)
        return;
    pthread_mutex_lock(&mutex);
    uint32_t kernel = number_kernel(mangled);
    kprof_record seen = {.type = KPROF_RECORD_SEEN, .seen = {kernel, ++sim.counts[kernel - 1]}};
    write_record(&seen);
    if (kprof_filter_take_launch(sim.filter, kprof_filter_match_name(sim.filter, mangled), device))
        write_launch(kernel, device);
    sim.launches++;
    pthread_mutex_unlock(&mutex);
}

/* The child of a fork has no CUDA context: it must leave the parent's spool alone. */
static void disarm_child(void)
{
    sim.armed = false;
    kprof_spool_writer_abandon(sim.writer);
}

static void damage_spool(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%ld-0.spool", getenv(KPROF_SESSION_ENV), (long)getpid());
    int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    static const char garbage[256] = {1, 0, 0, 0, 3, 0, 0, 0, 66};
    if (file < 0 || write(file, garbage, sizeof garbage) < 0)
        fprintf(stderr, "cannot damage %s\n", path);
    close(file);
}

static void finish(void)
{
    kprof_record record = {.type = KPROF_RECORD_END, .end = {sim.launches, sim.matched, sim.profiled}};
    if (strcmp(fault(), "damage") == 0)
        damage_spool();
    write_record(&record);
    sim.armed = false;
}

static bool make_values(void)
{
    size_t count = sim.config.chips[0].metrics.count;
    sim.values = calloc(count + 1, sizeof *sim.values);
    for (size_t i = 0; sim.values && i < count; i++)
        sim.values[i] = 1000.5 + (double)i;
    return sim.values != NULL;
}

static void write_opening(void)
{
    write_process();
    write_device();
    write_metrics();
    if (strcmp(fault(), "busy") == 0)
        write_message(KPROF_LOG_ERROR, KPROF_COUNTERS_BUSY, "another tool holds the counters (simulated)");
    if (strcmp(fault(), "permission") == 0)
        write_message(KPROF_LOG_ERROR, KPROF_NO_PERMISSION, "counters are for root alone (simulated)");
    if (strcmp(fault(), "talk") == 0) {
        write_message(KPROF_LOG_WARNING, KPROF_OK, "said once");
        write_message(KPROF_LOG_WARNING, KPROF_OK, "said once");
    }
}

EXPORT int InitializeInjection(void)
{
    const char *dir = getenv(KPROF_SESSION_ENV);
    if (sim.armed || !dir || kprof_config_load(dir, &sim.config) != KPROF_OK || sim.config.chip_count == 0)
        return 1;
    if (!sim.config.follow_children && sim.config.root_pid != getpid())
        return 1;
    if (!make_values() || kprof_filter_new(&sim.config.filter, &sim.filter) != KPROF_OK ||
        kprof_spool_writer_open(dir, &sim.writer) != KPROF_OK)
        return 1;
    sim.armed = true;
    kprof_log_set_sink(log_to_spool, NULL);
    pthread_atfork(NULL, NULL, disarm_child);
    atexit(finish);
    write_opening();
    return 1;
}
