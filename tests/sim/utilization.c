/* Sample i begins i intervals after samples were started, and is there when the clock has passed its end. One more
 * comes before them, with what was counted before. With KPROF_SIM_IDLE_LINKS no sample with a counter of links ends. */
#include "sim/utilization.h"
#include "sim/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_KERNELS  65536
#define MOST_COUNTERS 32

typedef struct span {
    int64_t start_ns, end_ns;
} span;

static kprof_device_ops others; /* the functions whose place is taken */
static struct {
    pthread_mutex_t mutex;
    int64_t now_ns;
    span kernels[MOST_KERNELS];
    size_t kernel_count;
    const kprof_chip_timeline *pass;
    int64_t interval_ns, start_ns, next; /* next: the sample to be given, from -1 */
    size_t most;
    bool is_enabled, runs, stopped, is_settled;
    int64_t lost_ns, lost_end_ns;
    uint64_t starts_ns[KPROF_PM_MOST_SAMPLES], ends_ns[KPROF_PM_MOST_SAMPLES];
    double values[KPROF_PM_MOST_SAMPLES * MOST_COUNTERS];
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_program(void)
{
    return sim.hooks && sim.hooks->is_brief;
}

void sim_utilization_add(int64_t start_ns, int64_t end_ns)
{
    pthread_mutex_lock(&state.mutex);
    if (state.kernel_count < MOST_KERNELS)
        state.kernels[state.kernel_count++] = (span){start_ns, end_ns};
    pthread_mutex_unlock(&state.mutex);
}

void sim_utilization_reach(int64_t now_ns)
{
    pthread_mutex_lock(&state.mutex);
    state.now_ns = now_ns;
    pthread_mutex_unlock(&state.mutex);
}

void sim_utilization_lose(int64_t count)
{
    pthread_mutex_lock(&state.mutex);
    state.lost_ns = state.now_ns;
    state.lost_end_ns = state.now_ns + count * state.interval_ns;
    pthread_mutex_unlock(&state.mutex);
}

/* With the mutex held. */
static bool waits_for_links(void)
{
    bool has_links = false;
    for (size_t i = 0; i < state.pass->metrics.count; i++)
        has_links = has_links || strncmp(state.pass->metrics.items[i], "nvl", 3) == 0;
    return has_links && getenv("KPROF_SIM_IDLE_LINKS");
}

void sim_utilization_await(bool without_links)
{
    const struct timespec pause = {0, 1000000};
    for (bool is_settled = false; !is_settled; nanosleep(&pause, NULL)) {
        pthread_mutex_lock(&state.mutex);
        is_settled = state.is_settled && !(without_links && waits_for_links());
        pthread_mutex_unlock(&state.mutex);
    }
}

static kprof_status open(uint32_t device, const char *chip, kprof_pm_sampling **out)
{
    if (!is_program())
        return others.pm_sampling_open(device, chip, out);
    *out = (kprof_pm_sampling *)&state;
    return KPROF_OK;
}

static kprof_status enable(kprof_pm_sampling *sampling)
{
    if (!is_program())
        return others.pm_sampling_enable(sampling);
    pthread_mutex_lock(&state.mutex);
    state.is_enabled = !getenv("KPROF_SIM_NO_SAMPLES");
    state.is_settled = !state.is_enabled;
    pthread_mutex_unlock(&state.mutex);
    return state.is_enabled ? KPROF_OK : kprof_fail(KPROF_NO_PERMISSION, "this user may not read counters (simulated)");
}

static kprof_status disable(kprof_pm_sampling *sampling)
{
    if (!is_program())
        return others.pm_sampling_disable(sampling);
    pthread_mutex_lock(&state.mutex);
    state.is_enabled = state.runs = false;
    pthread_mutex_unlock(&state.mutex);
    return KPROF_OK;
}

static kprof_status configure(kprof_pm_sampling *sampling, const kprof_pm_setup *setup)
{
    if (!is_program())
        return others.pm_sampling_configure(sampling, setup);
    pthread_mutex_lock(&state.mutex);
    if (!state.is_enabled || state.runs || setup->pass->metrics.count > MOST_COUNTERS || setup->interval_ns == 0 ||
        setup->most_samples == 0 || setup->most_samples > KPROF_PM_MOST_SAMPLES)
        sim_violation("samples of a program are configured that are not enabled, or run, or as nobody can");
    state.pass = setup->pass;
    state.interval_ns = (int64_t)setup->interval_ns;
    state.most = setup->most_samples;
    pthread_mutex_unlock(&state.mutex);
    return KPROF_OK;
}

static kprof_status start(kprof_pm_sampling *sampling)
{
    if (!is_program())
        return others.pm_sampling_start(sampling);
    pthread_mutex_lock(&state.mutex);
    if (!state.pass || state.runs)
        sim_violation("samples of a program are started that are not configured, or run");
    state.runs = state.is_settled = true;
    state.stopped = false;
    state.start_ns = state.now_ns;
    state.next = -1;
    pthread_mutex_unlock(&state.mutex);
    return KPROF_OK;
}

static kprof_status stop(kprof_pm_sampling *sampling)
{
    if (!is_program())
        return others.pm_sampling_stop(sampling);
    pthread_mutex_lock(&state.mutex);
    if (!state.runs)
        sim_violation("samples of a program are stopped that do not run");
    state.runs = false;
    state.stopped = true;
    pthread_mutex_unlock(&state.mutex);
    return KPROF_OK;
}

static double busy_pct(int64_t start_ns, int64_t end_ns)
{
    int64_t busy_ns = 0;
    for (size_t i = 0; i < state.kernel_count; i++) {
        const int64_t from = state.kernels[i].start_ns > start_ns ? state.kernels[i].start_ns : start_ns;
        const int64_t to = state.kernels[i].end_ns < end_ns ? state.kernels[i].end_ns : end_ns;
        busy_ns += to > from ? to - from : 0;
    }
    return 100.0 * (double)busy_ns / (double)(end_ns - start_ns);
}

static void give_sample(kprof_pm_data *out)
{
    const size_t i = out->count++, counters = state.pass->metrics.count;
    const int64_t start_ns = state.start_ns + state.next * state.interval_ns, end_ns = start_ns + state.interval_ns;
    state.starts_ns[i] = (uint64_t)(state.next < 0 ? start_ns - 1000000000 : start_ns);
    state.ends_ns[i] = (uint64_t)end_ns;
    const double busy = state.next < 0 ? 100 : busy_pct(start_ns, end_ns);
    for (size_t k = 0; k < counters; k++)
        state.values[i * counters + k] =
            busy / (double)(k + 1) * (strstr(state.pass->metrics.items[k], "per_second") ? 1e9 : 1);
}

static kprof_status read_samples(kprof_pm_sampling *sampling, kprof_pm_data *out)
{
    if (!is_program())
        return others.pm_sampling_read(sampling, out);
    pthread_mutex_lock(&state.mutex);
    if (!state.runs && !state.stopped)
        sim_violation("samples of a program are read that were not started");
    *out = (kprof_pm_data){.starts_ns = state.starts_ns, .ends_ns = state.ends_ns, .values = state.values};
    const bool waits = waits_for_links();
    for (; !waits && state.start_ns + (state.next + 1) * state.interval_ns <= state.now_ns && !out->is_cut;
         state.next++) {
        const int64_t end_ns = state.start_ns + (state.next + 1) * state.interval_ns;
        if (end_ns <= state.lost_ns || end_ns > state.lost_end_ns)
            give_sample(out);
        out->is_cut = out->count == state.most;
    }
    pthread_mutex_unlock(&state.mutex);
    return KPROF_OK;
}

static void close_samples(kprof_pm_sampling *sampling)
{
    if (!is_program())
        others.pm_sampling_close(sampling);
    else if (state.runs)
        sim_violation("samples of a program are closed that run");
}

void sim_utilization_prepare(kprof_device_ops *device)
{
    others = *device;
    device->pm_sampling_open = open;
    device->pm_sampling_enable = enable;
    device->pm_sampling_disable = disable;
    device->pm_sampling_configure = configure;
    device->pm_sampling_start = start;
    device->pm_sampling_stop = stop;
    device->pm_sampling_read = read_samples;
    device->pm_sampling_close = close_samples;
}
