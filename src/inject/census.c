/* A hash table of shapes under a mutex, which threads of CUPTI's fill, one at a time. */
#include "inject/census.h"

#include "core/bytes.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "inject/deliver.h"
#include "inject/engine.h"
#include "inject/kernels.h"
#include "inject/process.h"
#include "inject/recording.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS   1024
#define NAMES         1024 /* a power of two */
#define MOST_ROWS     (2 * KPROF_CENSUS_SHAPES)
#define SHORTEST_NS   INT64_C(1000000000)
#define SHARE_OF_TIME 16
#define LOOKS_GROW    4 /* look again which kernels have most time when there is a quarter more of it */

typedef struct census_row {
    kprof_census_record record;
    uint64_t written; /* launches that the spool knows of */
} census_row;

/* The kernel of a name. */
typedef struct known_name {
    char *mangled; /* owned; NULL: the slot is free */
    uint32_t kernel;
} known_name;

static struct {
    pthread_mutex_t mutex; /* guards all below */
    census_row *rows;      /* [row_count] */
    size_t row_count;
    uint32_t earlier; /* rows of earlier turns of kprof ctl, which are written, and stay as they are */
    uint32_t *slots;  /* [slot_count], a power of two: the number of a row, or 0 */
    size_t slot_count;
    known_name names[NAMES]; /* by hash; a name takes the place of another one */
    uint64_t lost;           /* launches that no row counts: CUPTI could not keep their times */
    uint64_t left_out;       /* or there are more kernels and shapes than rows */
    int64_t started_ns, written_ns;
    uint64_t total_ns, look_ns; /* of all launches; how much there is when kernels are ranked next */
    bool told;
} census = {.mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

/* The number of a kernel. */
static int64_t number_kernel(const char *text, bool is_mangled)
{
    known_name *name = &census.names[kprof_hash(KPROF_HASH_START, text, strlen(text)) & (NAMES - 1)];
    if (!kprof_recording_runs() || !is_mangled)
        return 0;
    if (name->mangled && strcmp(name->mangled, text) == 0) /* one thread of CUPTI's at a time comes here */
        return name->kernel;
    const kprof_kernel *kernel =
        kprof_kernels_find_named(text, false, kprof_engine.process.filter, kprof_deliver_kernel);
    char *copy = kernel ? strdup(text) : NULL;
    if (copy) {
        free(name->mangled);
        *name = (known_name){copy, kernel->record.kernel};
    }
    return kernel ? kernel->record.kernel : 0;
}

static bool is_shape(const kprof_census_record *a, const kprof_census_record *b)
{
    return a->kernel == b->kernel && a->device == b->device && a->dynamic_smem_bytes == b->dynamic_smem_bytes &&
           memcmp(a->grid, b->grid, sizeof a->grid) == 0 && memcmp(a->block, b->block, sizeof a->block) == 0;
}

static uint32_t *find_slot(uint32_t *slots, size_t count, const kprof_census_record *wanted)
{
    const uint32_t key[] = {wanted->kernel,   wanted->device,   wanted->dynamic_smem_bytes,
                            wanted->grid[0],  wanted->grid[1],  wanted->grid[2],
                            wanted->block[0], wanted->block[1], wanted->block[2]};
    size_t i = (size_t)kprof_hash(KPROF_HASH_START, key, sizeof key) & (count - 1);
    while (slots[i] && !is_shape(&census.rows[slots[i] - 1].record, wanted))
        i = (i + 1) & (count - 1);
    return &slots[i];
}

/* Keep half of the slots free. */
static bool grow(void)
{
    if (census.row_count * 2 < census.slot_count)
        return true;
    const size_t count = census.slot_count ? census.slot_count * 2 : FIRST_SLOTS;
    census_row *rows = realloc(census.rows, count / 2 * sizeof *rows);
    uint32_t *slots = calloc(count, sizeof *slots);
    census.rows = rows ? rows : census.rows;
    if (!rows || !slots) {
        free(slots);
        return false;
    }
    for (size_t i = 0; i < census.row_count; i++)
        *find_slot(slots, count, &census.rows[i].record) = (uint32_t)i + 1;
    free(census.slots);
    census.slots = slots;
    census.slot_count = count;
    return true;
}

static census_row *find_row(const kprof_census_record *wanted, size_t most)
{
    if (!grow())
        return NULL;
    uint32_t *slot = find_slot(census.slots, census.slot_count, wanted);
    if (!*slot && census.row_count >= most)
        return NULL;
    if (!*slot) {
        census.rows[census.row_count] = (census_row){.record = *wanted};
        census.rows[census.row_count].record.row = census.earlier + (uint32_t)census.row_count + 1;
        *slot = (uint32_t)++census.row_count;
    }
    return &census.rows[*slot - 1];
}

static census_row *find_place(const kprof_kernel_activity *kernel)
{
    const kprof_census_record others = {.kernel = (uint32_t)kernel->name, .device = (uint32_t)kernel->device};
    kprof_census_record wanted = others;
    const int64_t grid[] = {kernel->grid_x, kernel->grid_y, kernel->grid_z},
                  block[] = {kernel->block_x, kernel->block_y, kernel->block_z};
    if (wanted.kernel == 0)
        return NULL;
    for (int i = 0; i < 3; i++) {
        wanted.grid[i] = (uint32_t)grid[i];
        wanted.block[i] = (uint32_t)block[i];
    }
    wanted.dynamic_smem_bytes = (uint32_t)kernel->dynamic_smem_bytes;
    census_row *row = find_row(&wanted, KPROF_CENSUS_SHAPES);
    return row ? row : find_row(&others, MOST_ROWS);
}

static void add(kprof_census_record *record, uint64_t ns)
{
    record->shortest_ns = record->launches == 0 || ns < record->shortest_ns ? ns : record->shortest_ns;
    record->longest_ns = ns > record->longest_ns ? ns : record->longest_ns;
    record->total_ns += ns;
    record->launches++;
}

/* A kernel that may be measured, and its time. */
typedef struct ranked {
    uint64_t time_ns;
    kprof_kernel *kernel;
} ranked;

static int compare_times(const void *a, const void *b)
{
    const ranked *left = a, *right = b;
    return (left->time_ns < right->time_ns) - (left->time_ns > right->time_ns);
}

/* Put the kernels that have time into `out`, by their numbers. Those that launches have are others of the same name. */
static void add_times(ranked *out, kprof_kernel **kernels, size_t count)
{
    for (size_t i = 0; i < census.row_count; i++) {
        const kprof_census_record *record = &census.rows[i].record;
        if (record->kernel <= count && kernels[record->kernel - 1]->matches)
            out[record->kernel - 1] =
                (ranked){out[record->kernel - 1].time_ns + record->total_ns, kernels[record->kernel - 1]};
    }
}

static bool has_name_of(const kprof_kernel *kernel, const ranked *top, size_t count)
{
    return KPROF_ANY(i, count, top[i].kernel && strcmp(top[i].kernel->record.mangled, kernel->record.mangled) == 0);
}

/* With both mutexes held. */
static void rank_kernels(const kprof_kernel_table *table)
{
    const size_t count = table->kernel_count, most = kprof_engine.process.config.census_top;
    KPROF_AUTO_FREE ranked *top = kprof_calloc(count + 1, sizeof *top);
    if (!top)
        return;
    add_times(top, table->kernels, count);
    qsort(top, count, sizeof *top, compare_times);
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&table->kernels[i]->is_top,
                              has_name_of(table->kernels[i], top, most < count ? most : count), memory_order_relaxed);
}

/* With the mutex held. From now on, have the kernels measured that have most time so far. How often that changes grows
 * with the logarithm of the time, and so does what is measured of kernels that end up with less. */
static void choose_top(void)
{
    if (kprof_engine.process.config.census_top == 0 || census.total_ns < census.look_ns)
        return;
    census.look_ns = census.total_ns + census.total_ns / LOOKS_GROW + 1;
    if (pthread_mutex_lock(&kprof_the_kernels.mutex) != 0) /* a signal handler has interrupted a search */
        return;
    rank_kernels(&kprof_the_kernels);
    pthread_mutex_unlock(&kprof_the_kernels.mutex);
}

static void take(const kprof_activity *activity)
{
    const kprof_kernel_activity *kernel = &activity->kernel;
    if (!kprof_recording_runs() || activity->kind != KPROF_ACTIVITY_KERNEL)
        return;
    if (kprof_engine.process.config.only_records)
        atomic_fetch_add(&kprof_engine.process.launches, 1); /* else each is counted as it is launched */
    KPROF_HOLD(census.mutex);
    const bool is_timed = kernel->start_ns >= 0 && kernel->end_ns >= kernel->start_ns;
    census_row *row = is_timed ? find_place(kernel) : NULL;
    if (row) {
        add(&row->record, (uint64_t)(kernel->end_ns - kernel->start_ns));
        census.total_ns += (uint64_t)(kernel->end_ns - kernel->start_ns);
    }
    census.lost += !is_timed;
    census.left_out += is_timed && !row;
}

/* With the mutex held. Write the rows that have changed. */
static void write_rows(void)
{
    for (size_t i = 0; i < census.row_count; i++) {
        census_row *row = &census.rows[i];
        if (row->written == row->record.launches)
            continue;
        kprof_record record = {.type = KPROF_RECORD_CENSUS, .census = row->record};
        kprof_process_write(&record);
        row->written = row->record.launches;
    }
    census.written_ns = kprof_monotonic_ns();
}

/* Write rows more and more seldom, so that a long run writes little more than a short one. */
static void end_buffer(uint64_t dropped, uint64_t unknown)
{
    const int64_t now_ns = kprof_monotonic_ns();
    (void)unknown;
    if (!kprof_recording_runs())
        return;
    if (kprof_engine.process.config.only_records)
        atomic_fetch_add(&kprof_engine.process.launches, dropped);
    KPROF_HOLD(census.mutex);
    choose_top();
    const int64_t since_ns = now_ns - census.written_ns;
    census.lost += dropped;
    if (since_ns >= SHORTEST_NS && since_ns >= (now_ns - census.started_ns) / SHARE_OF_TIME)
        write_rows();
}

kprof_status kprof_census_start(void)
{
    static const kprof_activity_sink sink = {number_kernel, take, end_buffer};
    census.started_ns = census.written_ns = kprof_monotonic_ns();
    return kprof_recording_start(&sink, KPROF_ACTIVITIES_OF_KERNELS, NULL);
}

/* Give a turn rows of its own, and as many as others have, so that kprof can make a report of it. */
void kprof_census_begin_turn(void)
{
    if (pthread_mutex_lock(&census.mutex) != 0)
        return;
    census.earlier += (uint32_t)census.row_count;
    census.row_count = 0;
    if (census.slots)
        memset(census.slots, 0, census.slot_count * sizeof *census.slots);
    pthread_mutex_unlock(&census.mutex);
}

static void tell_missing(void)
{
    const unsigned long long lost = census.lost, left_out = census.left_out;
    if (census.told || lost + left_out == 0)
        return;
    census.told = true;
    if (lost > 0)
        kprof_log(KPROF_LOG_WARNING, "the census lacks the time of %llu launch%s, which CUPTI could not keep", lost,
                  lost == 1 ? "" : "es");
    if (left_out > 0)
        kprof_log(KPROF_LOG_WARNING, "the census lacks %llu launch%s: there are more kernels and shapes than it keeps",
                  left_out, left_out == 1 ? "" : "es");
}

void kprof_census_end(void)
{
    if (!kprof_engine.process.config.census || !kprof_recording_runs())
        return;
    (void)kprof_recording_finish();
    if (pthread_mutex_lock(&census.mutex) != 0) /* a signal handler ends the process within one of these functions */
        return;
    write_rows();
    pthread_mutex_unlock(&census.mutex);
    tell_missing();
}
