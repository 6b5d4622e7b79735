/* Random programs on the simulated machine, once plain and once under the engine: what the host sees and what memory
 * becomes must be the same, and every chosen launch must be reported once, with the values that it has when it is
 * measured alone. Usage: random THREADS FIRST COUNT [ranges]; programs FIRST to FIRST + COUNT - 1. Several run in one
 * process, under one configuration; a failure names the program and prints its steps. With a fourth word all measure
 * ranges. */
#include "core/config.h"
#include "inject/arming.h"
#include "inject/batch.h"
#include "inject/captures.h"
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/launch.h"
#include "inject/life.h"
#include "inject/process.h"
#include "inject/threads.h"
#include "inject/wait.h"
#include "sim/backend.h"
#include "sim/clock.h"
#include "sim/device.h"
#include "sim/program.h"
#include "spool/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ROWS      64 /* of a census */
#define GROUP          20 /* programs of one process, and of one kind */
#define DISARMED_GROUP 2  /* of one process that is disarmed in one of them */
#define METRICS        7
#define COUNTERS       3      /* of instructions */
#define MOST_SAMPLES   100000 /* so that each launch is told of */
#define TIME_LIMIT_S   900    /* of each program, which takes milliseconds: it hangs then, on any machine */
#define HASTE_MS       950    /* what the engine waits less, and so finds itself idle at once */
/* The passes that have the cheap and the dear witness, as bits. */
#define WITNESS_PASSES UINT64_C(0x5b)
#define DEAR_PASSES    UINT64_C(0x2e)
#define DISARMED       "the test gives up"
#define PART_OF        "its counters are part of the values of the process's launch at position "
#define OTHER_REFUSED  "the driver refused another launch of its sample"
#define FOLDER_PATTERN "/tmp/kprof-sim-XXXXXX"

/* The expected result of one launch of one program. */
typedef struct expectation {
    bool chosen, uncertain; /* uncertain: a reason may stand in place of values */
    bool perhaps;           /* chosen: unless another thread had stopped the profiler by then */
    bool disarmed;          /* it had not returned when the process was disarmed */
    unsigned reports;
    uint64_t signature; /* 0: it did not run */
} expectation;

/* A launch whose counters are part of the values of another one's sample. */
typedef struct part {
    uint64_t sample; /* position of that launch */
    uint64_t signature;
    bool found; /* in the values */
} part;

/* What was told of the instructions of a launch that was reported. */
typedef struct told_launch {
    uint64_t position;
    unsigned program, tag;
    bool replayed;
    unsigned records[2], functions[2]; /* for counters and samples: with and without values; with values */
    double sums[2][COUNTERS];
} told_launch;

_Static_assert(COUNTERS == SIM_REASONS, "both kinds have as many columns");

static struct {
    uint64_t first;
    unsigned programs;
    sim_traits traits;
    kprof_cache_control cache;
    uint32_t passes;
    const char *filter;
    uint64_t skip, count; /* of the filter */
    kprof_replay_choice replay_choice;
    uint32_t replay_batch;
    bool keeps_data, whole_graphs;
    uint64_t matching; /* launches so far that match it */
    kprof_profiler_calls profiler_calls;
    bool is_stopped; /* by the program's calls so far, where it has one thread */
    char folder[sizeof FOLDER_PATTERN];
    sim_program program;
    sim_result plain, profiled;
    expectation (*expected)[SIM_TAGS]; /* [programs] */
    part *parts;                       /* [part_count], owned */
    size_t part_count;
    bool counts, samples; /* instructions are measured so */
    uint32_t sampling_period;
    told_launch *told; /* [told_count], owned */
    size_t told_count;
    bool counts_reads;        /* the proof counts apart what is read of the host */
    bool only_ranges;         /* programs measure ranges of theirs */
    unsigned repeated_ranges; /* that have values */
    uint64_t code;            /* checksums that were told, as bits from that of the first module */
} group;

static void print_group(const char *what)
{
    fprintf(stderr,
            "program %llu (%u after the first of its process): %u threads, %s, %u passes, capacity %zu, batches of "
            "%u%s%s%s, "
            "filter %s +%llu *%llu%s%s%s%s%s%s\n",
            (unsigned long long)(group.first + sim.program), sim.program, group.traits.lanes,
            group.cache == KPROF_CACHE_FLUSH_ALL ? "caches flushed" : "batches", group.passes, sim.capacity,
            group.replay_batch, group.keeps_data ? ", kept" : "", sim.all_witnesses ? ", all witnesses" : "",
            sim.managed && group.traits.shared_memory ? ", managed memory" : "", group.filter ? group.filter : "all",
            (unsigned long long)group.skip, (unsigned long long)group.count,
            sim.faulty      ? ", with faults"
            : sim.slow      ? ", with slow replays"
            : sim.interrupt ? ", disarmed"
            : sim.arm       ? ", armed by turns"
                            : "",
            group.whole_graphs ? ", whole graphs" : "", sim.few_shapes ? ", few shapes" : "",
            group.traits.host_access ? ", with host access" : "", group.traits.pools ? ", pools" : "",
            group.traits.long_batches ? ", with many launches" : "");
    fprintf(stderr, "further:%s%s%s%s%s%s\n", group.counts_reads ? "" : " reads not counted",
            group.traits.staged ? " staged" : "", group.traits.changes_graphs ? " changed graphs" : "",
            group.traits.polls ? " polls" : "", group.traits.refusals ? " refusals" : "",
            group.traits.reloads ? " reloads" : "");
    if (sim.has_default)
        fprintf(stderr, "default streams, independent %x\n", sim.independent);
    if (group.counts || group.samples)
        fprintf(stderr, "instructions: %s%s, period %u%s\n", group.counts ? "counted " : "",
                group.samples ? "sampled" : "", group.sampling_period, sim.plants_errors ? ", with errors" : "");
    sim_program_print(&group.program, stderr);
    fprintf(stderr, "again: random %u %llu %u%s\n", group.traits.lanes, (unsigned long long)group.first,
            sim.program + 1, group.only_ranges ? " ranges" : "");
}

static void on_alarm(int number)
{
    sim_violation("the program hangs");
}

/* As when the disk is full: from now on nothing is measured, and what is open must still be put right. */
static void disarm(void)
{
    kprof_process_disarm(KPROF_OUTPUT, DISARMED);
}

static bool is_disarmed(uint64_t first, unsigned lanes)
{
    return sim_hash(first / GROUP, lanes + SIM_LANES) % 8 == 0;
}

/* A thread arms and disarms the engine while the program goes on, as kprof ctl does. */
static struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned wanted, done;
    bool runs, armed;
} arming = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .armed = true};

static void *arm_and_disarm(void *unused)
{
    pthread_mutex_lock(&arming.mutex);
    while (arming.runs) {
        if (arming.wanted == arming.done) {
            pthread_cond_wait(&arming.changed, &arming.mutex);
            continue;
        }
        const kprof_control_wish wish = {arming.wanted, !arming.armed, 0};
        pthread_mutex_unlock(&arming.mutex);
        const bool is_armed = kprof_arming_follow(&wish) == KPROF_CONTROL_ARMED;
        pthread_mutex_lock(&arming.mutex);
        arming.armed = is_armed;
        arming.done = wish.turn;
        pthread_cond_broadcast(&arming.changed);
    }
    pthread_mutex_unlock(&arming.mutex);
    return unused;
}

static void arm_or_disarm(void)
{
    pthread_mutex_lock(&arming.mutex);
    arming.wanted++;
    pthread_cond_broadcast(&arming.changed);
    pthread_mutex_unlock(&arming.mutex);
}

static void await_arming(void)
{
    pthread_mutex_lock(&arming.mutex);
    while (arming.runs && arming.wanted != arming.done)
        pthread_cond_wait(&arming.changed, &arming.mutex);
    pthread_mutex_unlock(&arming.mutex);
}

static void start_arming(void)
{
    arming.runs = sim.arm != NULL;
    if (arming.runs && !kprof_threads_start(&arming.thread, arm_and_disarm, NULL))
        sim_violation("the test itself: no thread");
}

static void end_arming(void)
{
    if (!arming.runs)
        return;
    await_arming();
    pthread_mutex_lock(&arming.mutex);
    arming.runs = false;
    pthread_cond_broadcast(&arming.changed);
    pthread_mutex_unlock(&arming.mutex);
    pthread_join(arming.thread, NULL);
}

static bool is_armed_by_turns(uint64_t first, unsigned lanes)
{
    return sim_hash(first / GROUP, lanes + SIM_LANES) % 8 == 1;
}

static void choose_traits(uint64_t *random, unsigned lanes)
{
    bool shared = sim_random(random) % 3 == 0;
    group.traits = (sim_traits){
        .lanes = lanes,
        .steps = lanes > 1 ? 60 : 120,
        .shared_memory = shared,
        .host_access = shared,
        .crashes = sim_random(random) % 4 == 0,
        .captures = sim_random(random) % 3 == 0,
        .nested_calls = sim_random(random) % 6 == 0,
        .odd_launches = sim_random(random) % 2 == 0,
        .common = lanes > 1 && sim_random(random) % 2 == 0,
        .exported_memory = sim_random(random) % 6 == 0,
        .holds = lanes == 1 && sim_random(random) % 12 == 0,
    };
    group.traits.one_context = shared && lanes == 1 && sim_random(random) % 4 > 0;
    group.traits.pools = sim_random(random) % 2 == 0;
    group.traits.dice = !group.traits.holds && sim_random(random) % 4 == 0;
}

/* What programs with the numbers of others do besides. */
static void choose_further_traits(uint64_t random)
{
    group.traits.staged = random % 2 == 0;
    group.traits.changes_graphs = group.traits.captures && random / 2 % 2 == 0;
    group.traits.polls = random / 4 % 3 == 0;
    group.traits.refusals = random / 12 % 3 == 0;
    if (random / 36 % 2 == 0 || group.traits.one_context)
        return;
    group.replay_choice = KPROF_REPLAY_WHERE_PROVED; /* else few copies are in batches */
    group.replay_batch = sim.most_launches = 0;
    group.keeps_data = false;
    group.traits.exported_memory = group.traits.shared_memory = group.traits.host_access = false;
    sim.capacity = 100;
}

static void choose_filter(uint64_t *random, unsigned lanes)
{
    static const char *const filters[] = {NULL, NULL, "regex:add|count|crash", "regex:^(move|print)$", "none"};
    group.filter = filters[sim_random(random) % 5];
    if (lanes > 1 || sim_random(random) % 3 > 0)
        return;
    group.skip = sim_random(random) % 20;
    group.count = sim_random(random) % 200;
}

static void choose_batches(uint64_t *random, unsigned lanes)
{
    static const uint32_t sizes[] = {0, 0, 0, 1, 2, 3, 10};
    static const kprof_replay_choice choices[] = {KPROF_REPLAY_WHERE_PROVED, KPROF_REPLAY_WHERE_PROVED,
                                                  KPROF_REPLAY_WHERE_PROVED, KPROF_REPLAY_ONLY, KPROF_MULTIPLEX_ALL};
    group.replay_choice = choices[sim_random(random) % 5];
    group.replay_batch = sizes[sim_random(random) % 7];
    group.keeps_data = sim_random(random) % 8 == 0;
    sim.most_launches = group.keeps_data ? 1 : group.replay_batch;
    sim.all_witnesses = sim_random(random) % 2 == 0;
    if (sim_random(random) % 8 == 0)
        group.traits = (sim_traits){
            .lanes = lanes, .steps = lanes > 1 ? 150 : 400, .crashes = group.traits.crashes, .long_batches = true};
}

/* Passes of a sample come from launches of one kernel and shape, which must come often. */
static void choose_shapes(uint64_t random)
{
    sim.few_shapes = group.traits.few_kernels = random < 3;
    if (random > 1)
        return;
    group.replay_choice = KPROF_MULTIPLEX_ALL;
    group.traits.captures = false;
    group.traits.steps *= group.traits.long_batches ? 1 : 2;
}

/* Does work wait for later calls? */
static bool has_waits(void)
{
    return group.traits.holds || group.traits.spins || group.traits.peers ||
           (group.traits.values && group.traits.lanes == 1);
}

/* Or does it perhaps not end while a call may be held? */
static bool may_be_late(void)
{
    return has_waits() || group.traits.slow;
}

/* Does the engine find itself idle at once? */
static bool is_hasty(void)
{
    return has_waits() || sim.interrupt;
}

/* So that batches can begin, and go on, behind kernels that wait for the host. */
static void choose_batches_behind(void)
{
    group.traits.plain_memory = group.traits.one_context = group.traits.few_kernels = true;
    group.traits.pools = group.traits.exported_memory = false;
    group.traits.crashes = false; /* after one hardly any batch opens */
    group.replay_choice = KPROF_REPLAY_WHERE_PROVED;
    group.replay_batch = sim.most_launches = 0;
    group.keeps_data = sim.managed = sim.hides_host = false;
    group.passes = group.passes > 1 ? group.passes : 2;
    sim.capacity = 100;
}

static void choose_waits(uint64_t random)
{
    group.traits.values = sim_hash(random, 1) % 4 == 0;
    const bool alone = group.traits.lanes == 1; /* real time passes for several threads, and a slow machine takes it */
    group.traits.spins = alone && (random % 6 == 0 || random % 18 == 1);
    group.traits.served = group.traits.spins && sim_hash(random, 2) % 2 == 0;
    group.traits.peers = alone && (random % 18 == 1 || random % 6 == 2);
    if (group.traits.peers || group.traits.values) /* else what gives the sign may never run */
        group.traits.crashes = false;
    group.traits.slow = alone && random / 18 % 4 == 0;
    sim.has_slow = group.traits.slow;
    sim.may_wait = may_be_late();
    sim.has_flags = group.traits.spins;
    if (group.traits.spins && random % 12 == 0)
        choose_batches_behind();
    sim.holds = UINT_MAX;
    sim_clock_set_back_ms(is_hasty() ? HASTE_MS : 0);
}

static void choose_profiler_calls(uint64_t random)
{
    const bool has_ranges = group.only_ranges || (random == 0 && group.first / GROUP % 2 == 1);
    random = group.only_ranges ? 0 : random;
    static const kprof_profiler_calls calls[] = {KPROF_FROM_A_START_CALL, KPROF_PROFILER_CALLS_IGNORED,
                                                 KPROF_FROM_THE_START};
    group.profiler_calls = random < 3 ? calls[random] : KPROF_FROM_THE_START;
    group.traits.profiler_calls = random < 3;
    group.is_stopped = group.profiler_calls == KPROF_FROM_A_START_CALL;
    group.traits.ranges = group.only_ranges;
    if (!has_ranges)
        return;
    group.replay_choice = KPROF_RANGES; /* from each start call to the next stop call */
    group.filter = NULL;
    group.skip = group.count = 0;
    group.counts = group.samples = group.keeps_data = false;
    sim.most_launches = group.replay_batch;
}

/* Instructions are measured in programs of their own, which have the launches of others. */
static void choose_instructions(uint64_t random)
{
    static const uint32_t periods[] = {0, 0, KPROF_SHORTEST_PERIOD, 17};
    const bool measures = random % 3 == 0;
    group.counts = measures && random / 3 % 4 > 0;
    group.samples = measures && random / 3 % 4 < 3;
    group.sampling_period = periods[random / 12 % 4];
    sim.plants_errors = measures && random / 48 % 2 == 0;
}

/* Nobody captures the default stream, nor beside it. */
static void choose_default_streams(uint64_t random)
{
    sim.has_default = !group.traits.captures && random % (group.only_ranges ? 2 : 4) == 0;
    sim.independent = (uint32_t)(random >> 8);
    if (!sim.has_default || !group.only_ranges)
        return;
    sim.faulty = group.traits.crashes = false;                 /* else few ranges are repeated, */
    group.traits.odd_launches = group.traits.refusals = false; /* and few streams wait by themselves */
    group.passes = group.passes > 1 ? group.passes : 2;
}

/* Launches are counted and timed beside counters. kprof refuses that together with some of the others, and repeats
 * launches or measures none. */
static void choose_census(uint64_t random)
{
    const bool may = group.replay_choice == KPROF_REPLAY_WHERE_PROVED || group.replay_choice == KPROF_REPLAY_ONLY;
    sim.keeps_activities = random % 3 == 0 && may && !group.whole_graphs && !group.samples && !sim.arm;
    if (sim.keeps_activities)
        group.replay_choice = KPROF_REPLAY_ONLY;
}

static void choose_group(uint64_t first, unsigned programs, unsigned lanes)
{
    static const uint32_t passes[] = {1, 2, 7};
    static const size_t capacities[] = {1, 3, 64, 100};
    uint64_t random = sim_hash(first / GROUP, lanes);
    group.first = first;
    group.programs = programs;
    group.counts_reads = first / GROUP % 5 != 3;
    group.cache = sim_random(&random) % 3 == 0 ? KPROF_CACHE_FLUSH_ALL : KPROF_CACHE_FLUSH_NONE;
    group.passes = passes[sim_random(&random) % 3];
    sim.capacity = capacities[sim_random(&random) % 4];
    sim.faulty = sim_random(&random) % 4 == 0;
    sim.is_tight = true;
    sim.slow = sim_random(&random) % 8 == 0;
    sim.interrupt = is_disarmed(first, lanes) ? disarm : NULL;
    sim.flushes = group.cache == KPROF_CACHE_FLUSH_ALL;
    sim.jittery = lanes > 1;
    sim.second_chip = sim_random(&random) % 4 == 0 ? "AD102" : "GH100";
    choose_traits(&random, lanes);
    group.traits.quiet_captures = first / GROUP % 2 == 0;
    choose_filter(&random, lanes);
    choose_batches(&random, lanes);
    if (group.traits.one_context && sim_random(&random) % 4 > 0) { /* else hardly any batch has several launches */
        sim.capacity = 100;
        group.replay_batch = sim.most_launches = 0;
        group.keeps_data = false;
    }
    sim.hides_host = sim_random(&random) % 2 == 0;
    sim.managed = sim_random(&random) % 2 == 0;
    sim.managed_is_large = first / GROUP % 3 == 1;
    sim.refuses_frees = first / GROUP % 4 == 2;
    sim.sees_output = first % 3 > 0;
    sim.hides_output = first % 3 == 1;
    sim.saves_host = first / GROUP % 2 == 0;
    sim.several_threads = lanes > 1;
    group.whole_graphs = sim_random(&random) % 2 == 0 && !group.traits.quiet_captures;
    sim.pageable = first / GROUP % 5 > 2;
    sim.tells = first % 7 < 3;
    choose_shapes(sim_hash(first / GROUP, lanes) % 8);
    if (first / GROUP % 2 == 1)
        choose_further_traits(sim_hash(first / GROUP, lanes + 5 * SIM_LANES));
    group.traits.reloads = first / GROUP % 4 == 1;
    choose_waits(sim_hash(first / GROUP, lanes + 2 * SIM_LANES));
    choose_instructions(sim_hash(first / GROUP, lanes + 4 * SIM_LANES));
    choose_profiler_calls(sim_hash(first / GROUP, lanes + 3 * SIM_LANES) % 12);
    sim.arm = is_armed_by_turns(first, lanes) && !may_be_late() ? arm_or_disarm : NULL;
    sim.secret_holds = group.traits.holds && !group.traits.shared_memory && sim_random(&random) % 2 == 0;
    if (sim.interrupt || sim.arm || may_be_late()) /* else which launches are counted would depend on when */
        group.skip = group.count = 0;
    choose_census(first / GROUP);
    choose_default_streams(sim_hash(first / GROUP, lanes + 6 * SIM_LANES));
    if (lanes == 1 && first / GROUP % 100 == 0) { /* some wait long: nothing ends, and everything is measured */
        group.traits.captures = true;
        sim.has_default = false;
        group.filter = NULL;
        group.skip = group.count = 0;
        sim.pauses = 2;
        sim.interrupt = sim.arm = NULL;
    }
}

static void check(kprof_status status)
{
    if (status != KPROF_OK)
        sim_violation("the test itself: %s", kprof_status_message(status));
}

static void start_engine(void)
{
    char name[8];
    uint8_t image[4] = {0};
    uint32_t last_passes[METRICS], patched[METRICS] = {0};
    kprof_chip_metrics chip = {.chip = "GH100",
                               .last_passes = last_passes,
                               .patched = patched,
                               .witness_passes = {WITNESS_PASSES, DEAR_PASSES},
                               .pass_count = group.passes};
    for (unsigned i = 0; i < KPROF_IMAGES; i++)
        chip.images[i] = (kprof_chip_image){image, sizeof image};
    for (unsigned i = 0; i < METRICS; i++) {
        last_passes[i] = i % group.passes;
        snprintf(name, sizeof name, "m%u", i);
        if (!kprof_strlist_add(&chip.metrics, name))
            sim_violation("the test itself: no memory");
    }
    if (!kprof_strlist_add(&chip.witnesses, "witness") || !kprof_strlist_add(&chip.witnesses, SIM_DEAR "witness") ||
        !kprof_strlist_add(&chip.proof, "sectors of the host") || !kprof_strlist_add(&chip.proof, "sectors of peers") ||
        (group.counts_reads && !kprof_strlist_add(&chip.proof, "sectors read of the host")))
        sim_violation("the test itself: no memory");
    kprof_config config = {.chips = &chip,
                           .chip_count = 1,
                           .cache_control = group.cache,
                           .witness_control = sim.all_witnesses ? KPROF_WITNESSES_ALL : KPROF_WITNESSES_AUTO,
                           .replay_choice = group.replay_choice,
                           .multiplex_samples = MOST_SAMPLES,
                           .replay_batch = group.replay_batch,
                           .graph_profiling = group.whole_graphs ? KPROF_GRAPH_WHOLE : KPROF_GRAPH_NODES,
                           .follow_children = true,
                           .census = sim.keeps_activities};
    config.filter = (kprof_filter_spec){.kernel = (char *)group.filter,
                                        .launch_skip = group.skip,
                                        .launch_count = group.count,
                                        .profiler_calls = group.profiler_calls};
    for (unsigned i = 0; i < COUNTERS && group.counts; i++) {
        snprintf(name, sizeof name, "i%u", i);
        if (!kprof_strlist_add(&config.instruction_metrics, name))
            sim_violation("the test itself: no memory");
    }
    config.samples = group.samples;
    config.sampling_period = group.sampling_period;
    strcpy(group.folder, FOLDER_PATTERN);
    if (!mkdtemp(group.folder))
        sim_violation("the test itself: no folder");
    config.counter_data_dir = group.keeps_data ? group.folder : NULL;
    check(kprof_config_save(&config, group.folder));
    kprof_strlist_free(&config.instruction_metrics);
    kprof_strlist_free(&chip.metrics);
    kprof_strlist_free(&chip.witnesses);
    kprof_strlist_free(&chip.proof);
    setenv(KPROF_SESSION_ENV, group.folder, 1);
    kprof_life_begin(&sim_device);
}

static bool name_matches(sim_kernel kernel)
{
    if (!group.filter)
        return true;
    if (strcmp(group.filter, "none") == 0)
        return false;
    bool first = strncmp(group.filter, "regex:a", 7) == 0;
    return first ? kernel == SIM_ADD || kernel == SIM_COUNT || kernel == SIM_CRASH
                 : kernel == SIM_MOVE || kernel == SIM_PRINT;
}

static bool measures_whole_graphs(void)
{
    return group.whole_graphs || group.replay_choice == KPROF_MULTIPLEX_ALL || group.replay_choice == KPROF_RANGES;
}

/* Graphs have a name that no filter has. */
static bool matches(const sim_step *step)
{
    if (step->op == SIM_GRAPH_LAUNCH)
        return measures_whole_graphs() && !group.filter;
    return step->op == SIM_LAUNCH && name_matches(step->kernel);
}

/* As at the end of a process, where a batch may still be open. */
static bool ends_without_call(uint64_t seed)
{
    return seed % 2 == 1;
}

/* With the memory that replays cannot save, or launches that cannot be repeated, reasons take the place of values. */
static bool is_uncertain(const sim_step *step)
{
    unsigned context = sim_context_of_stream(step->stream);
    bool is_shared =
        group.traits.shared_memory && (!sim.managed || sim.several_threads || group.traits.staged); /* by functions */
    return sim.faulty || step->refused || is_shared || group.traits.spins ||
           (step->kernel == SIM_PRINT && (group.passes > 1 || sim.keeps_activities)) || group.traits.captures ||
           ends_without_call(group.first + sim.program) || group.program.crashes[context] ||
           (context == 1 && strcmp(sim.second_chip, "GH100") != 0);
}

static void expect_launch(const sim_step *step)
{
    if (step->op == SIM_PROFILER && group.profiler_calls != KPROF_PROFILER_CALLS_IGNORED)
        group.is_stopped = step->value % 2 == 0;
    /* A sample of several launches counts as one; a launch that is only watched, or reached the host, as none. */
    const bool may_not_count =
        group.replay_choice != KPROF_REPLAY_ONLY || group.passes == 1 || group.traits.shared_memory;
    const bool counts_others = group.count > 0 && may_not_count;
    const bool perhaps = (group.traits.lanes > 1 && group.traits.profiler_calls) || counts_others;
    if (step->tag == 0 || !matches(step) || (group.is_stopped && !perhaps))
        return;
    uint64_t number = group.matching++;
    bool chosen = number >= group.skip && (group.count == 0 || counts_others || number < group.skip + group.count);
    group.expected[sim.program][step->tag] = (expectation){.chosen = chosen,
                                                           .perhaps = perhaps,
                                                           .uncertain = is_uncertain(step),
                                                           .signature = group.plain.signatures[step->tag]};
}

/* A graph that copies from the host what it has copied there before is not followed. */
static bool is_followed(const sim_step *nodes, unsigned count)
{
    bool has_output = false, follows = true;
    for (unsigned i = 0; i < count; i++) {
        follows = follows && !(has_output && nodes[i].op == SIM_COPY_IN);
        has_output = has_output || nodes[i].op == SIM_COPY_OUT;
    }
    return follows;
}

static void expect_nodes(unsigned lane, unsigned step)
{
    sim_step nodes[SIM_NODES];
    unsigned count = sim_program_nodes(&group.program, lane, step, nodes);
    for (unsigned i = 0; i < count && is_followed(nodes, count); i++)
        expect_launch(&nodes[i]);
}

static void expect_launches(void)
{
    for (unsigned tag = 0; tag < SIM_TAGS; tag++)
        group.expected[sim.program][tag].signature = group.plain.signatures[tag];
    for (unsigned lane = 0; lane < group.traits.lanes; lane++)
        for (unsigned i = 0; i < group.program.counts[lane]; i++) {
            const sim_step *step = &group.program.steps[lane][i];
            if (step->op == SIM_GRAPH_LAUNCH && !measures_whole_graphs())
                expect_nodes(lane, i);
            else
                expect_launch(step);
        }
}

static void end_contexts(void)
{
    for (unsigned context = 0; context < SIM_CONTEXTS; context++) {
        sim_step step = {.op = SIM_DESTROY_CONTEXT, .stream = context * 2};
        sim_call(&step, NULL);
    }
}

/* A crash must show in the end, however the context is used. */
static void check_errors(void)
{
    for (unsigned context = 0; context < SIM_CONTEXTS; context++) {
        sim_step step = {.op = SIM_SYNC_CONTEXT, .stream = context * 2};
        bool crashed = group.program.crashes[context];
        if (sim_call(&step, NULL) != (crashed ? SIM_ERROR : 0))
            sim_violation("context %u %s", context, crashed ? "hides its error" : "has an error of its own");
    }
}

/* As when the process ends. */
static void finish(void)
{
    kprof_launch_finish();
    if (kprof_batch_is_open())
        sim_violation("a batch is open after the end");
}

static void run_once(bool hooked, sim_result *result, uint64_t seed)
{
    sim_reset(seed);
    sim.hooked = hooked;
    sim.tells_contexts = seed % 2 == 0; /* while one is known, more launches may be repeated */
    const unsigned contexts = group.traits.one_context ? 1 : SIM_CONTEXTS;
    for (unsigned context = 0; hooked && sim.tells_contexts && context < contexts; context++)
        sim.hooks->context_created(&sim.contexts[context]);
    sim_program_run(&group.program, result);
    if (atomic_load(&kprof_the_gate.inside) != 0)
        sim_violation("%d calls of the program have not left the gate", atomic_load(&kprof_the_gate.inside));
    await_arming();
    if (seed % 3 == 0)
        check_errors();
    if (hooked && seed % 3 == 1 && sim.pauses == 0 && !is_hasty()) {
        finish();
        kprof_launch_prepare(); /* where no thread of the engine runs yet */
    }
    if (hooked && is_hasty()) /* else the engine, which finds itself idle at once, may be replaying */
        end_contexts();
    sim_drain();
    sim_program_read_memory(&group.program, result);
    if (hooked && !ends_without_call(seed))
        end_contexts();
    for (unsigned context = 0; hooked && context < SIM_CONTEXTS; context++)
        sim.hooks->context_ending(&sim.contexts[context]);
    sim.hooked = false;
}

/* Else only the first programs would try to repeat their ranges. */
static void forget_failures(kprof_kernel *kernel)
{
    atomic_store(&kernel->unrepeated, 0);
}

static void run_program(unsigned number)
{
    uint64_t seed = group.first + number;
    sim.program = number;
    sim_program_generate(&group.program, &group.traits, seed);
    kprof_kernels_visit(forget_failures);
    run_once(false, &group.plain, seed);
    expect_launches();
    if (group.traits.quiet_captures) /* as if it had had some */
        atomic_store(&kprof_the_captures.quiet, UINT_MAX / 2);
    atomic_store(&kprof_the_captures.lossy, false);
    run_once(true, &group.profiled, seed);
    for (unsigned tag = 0; tag < SIM_TAGS; tag++)
        group.expected[number][tag].disarmed = sim.arm || (sim.interrupt && !sim.returned[tag]);
    const char *difference = sim_program_compare(&group.program, &group.plain, &group.profiled);
    if (difference)
        sim_violation("%s", difference);
    sim_check_nothing_left();
}

static void load_program(unsigned number)
{
    sim.program = number;
    sim_program_generate(&group.program, &group.traits, group.first + number);
}

/* As sim/backend.c writes them. */
static unsigned tag_of(const kprof_launch_record *launch)
{
    return launch->max_blocks_per_sm;
}

static unsigned program_of(const kprof_launch_record *launch)
{
    return launch->configured_smem_bytes;
}

/* Does the reason tell of work that waits for later calls, or takes as long on this machine? */
static bool is_of_waiting(const char *reason)
{
    return strstr(reason, "did not end") || strstr(reason, "which is not repeated, has changed memory") ||
           strstr(reason, "had ended") || strstr(reason, "may have waited for") || strstr(reason, "may depend on") ||
           strstr(reason, "another thread stayed");
}

/* Does the reason tell of managed memory that stayed on the host, where kernels reached it? That loses a batch. */
static bool is_of_managed(const char *reason)
{
    return group.traits.shared_memory && sim.managed &&
           (strstr(reason, "reached memory of the host") || strstr(reason, "managed memory came"));
}

/* Reasons that come from what other launches do, and when. */
static bool is_excused(const kprof_launch_record *launch)
{
    return group.replay_choice == KPROF_REPLAY_ONLY ||
           (launch->mode == KPROF_REPLAY_MULTIPLEX && strstr(launch->reason, "had their turn")) ||
           ((group.counts || group.samples) && strstr(launch->reason, "multiplexed: its instructions were ")) ||
           strstr(launch->reason, PART_OF) || (group.traits.odd_launches && strstr(launch->reason, OTHER_REFUSED)) ||
           (group.traits.captures && strstr(launch->reason, "captured")) ||
           (sim.interrupt && strstr(launch->reason, "profiling has ended")) || sim.arm ||
           (may_be_late() && is_of_waiting(launch->reason)) || is_of_managed(launch->reason) ||
           (sim.hides_output && strstr(launch->reason, "its kernel can print, and kprof does not see")) ||
           (group.traits.dice && strstr(launch->reason, "a replay computed something else")) ||
           (sim.slow && strstr(launch->reason, "took far longer")) || strstr(launch->reason, "only watched") ||
           (ends_without_call(group.first + program_of(launch)) && strstr(launch->reason, "context ended"));
}

/* Are the values of the pass those of the launch that has this signature? */
static bool gave_pass(const kprof_launch_record *launch, uint32_t pass, uint64_t signature)
{
    for (uint32_t i = pass; i < launch->value_count; i += group.passes)
        if (launch->values[i] != sim_value(signature, i))
            return false;
    return true;
}

/* Is a launch of the sample one that did not run alone, behind a crash? */
static bool has_unknown_part(uint64_t sample)
{
    for (size_t i = 0; i < group.part_count; i++)
        if (group.parts[i].sample == sample && group.parts[i].signature == 0)
            return true;
    return false;
}

/* Values of each pass come from another launch: its own, or one that is told to be part of them. */
static void check_passes(const kprof_launch_record *launch, uint64_t own)
{
    uint32_t passes = 0, own_passes = 0;
    size_t missing = 0;
    for (uint32_t pass = 0; pass < group.passes; pass++) {
        size_t i = 0;
        if (isnan(launch->values[pass]))
            continue;
        passes++;
        while (i < group.part_count && (group.parts[i].sample != launch->launch || group.parts[i].found ||
                                        !gave_pass(launch, pass, group.parts[i].signature)))
            i++;
        if (i < group.part_count)
            group.parts[i].found = true;
        else if (own_passes++ > 0 || !gave_pass(launch, pass, own))
            sim_violation("tag %u: pass %u has values of no launch of its sample", tag_of(launch), pass);
    }
    for (size_t i = 0; i < group.part_count; i++)
        missing += group.parts[i].sample == launch->launch && !group.parts[i].found;
    if (own_passes != 1 || missing > 0 || passes != launch->pass_count)
        sim_violation("tag %u: %u of %u passes are its own, and values lack %zu launches", tag_of(launch), own_passes,
                      launch->pass_count, missing);
}

/* In one pass, those of its metrics, with the reason why; else all. */
static void check_values(const kprof_launch_record *launch, const expectation *expected)
{
    uint32_t measured = 0;
    if (launch->value_count != METRICS)
        sim_violation("tag %u has %u values", tag_of(launch), launch->value_count);
    bool is_sample = sim.few_shapes && launch->mode == KPROF_REPLAY_MULTIPLEX;
    if (is_sample && !has_unknown_part(launch->launch))
        check_passes(launch, expected->signature);
    for (uint32_t i = 0; i < launch->value_count; i++) {
        measured += !isnan(launch->values[i]);
        if (!is_sample && !isnan(launch->values[i]) && launch->values[i] != sim_value(expected->signature, i))
            sim_violation("tag %u has another value than it has alone", tag_of(launch));
    }
    bool abandoned = (sim.slow || sim.faulty) && strstr(launch->reason, "abandoned");
    bool partly = abandoned || (launch->mode == KPROF_REPLAY_MULTIPLEX && launch->reason[0]);
    if (measured == 0 || (measured < METRICS && !partly))
        sim_violation("tag %u has %u of %u values and no reason", tag_of(launch), measured, METRICS);
}

/* The spread is that of the passes that have the witness, which are none where it was left out. */
static void check_witness(const kprof_launch_record *launch, unsigned witness, uint64_t with_witness)
{
    double low = INFINITY, high = 0, sum = 0;
    unsigned passes = 0;
    bool is_sample = launch->mode == KPROF_REPLAY_MULTIPLEX;
    if (is_sample && sim.faulty) /* its witness may not have been read after a pass */
        return;
    for (uint32_t pass = 0; (is_sample || launch->mode == KPROF_REPLAY_BATCH) && pass < group.passes; pass++) {
        bool is_counted = is_sample ? !isnan(launch->values[pass]) : pass < launch->pass_count;
        if (!is_counted || (with_witness >> pass & 1) == 0)
            continue;
        low = fmin(low, sim_witness_in(pass));
        high = fmax(high, sim_witness_in(pass));
        sum += sim_witness_in(pass);
        passes++;
    }
    double expected = passes < 2 ? NAN : 100 * (high - low) / (sum / passes);
    double seen = launch->witness_spreads_pct[witness];
    if (isnan(seen) && witness == 1 && !sim.all_witnesses) /* the profiler has checked whether it was due */
        return;
    if (isnan(expected) != isnan(seen) || fabs(expected - seen) > 1e-9)
        sim_violation("tag %u: passes differ by %g %%, not %g %%", tag_of(launch), seen, expected);
}

static void check_witnesses(const kprof_launch_record *launch)
{
    if (launch->witness_count != 2)
        sim_violation("tag %u has %u witnesses", tag_of(launch), launch->witness_count);
    check_witness(launch, 0, WITNESS_PASSES);
    check_witness(launch, 1, DEAR_PASSES);
}

/* Each launch keeps values of its own. */
static void check_kept(const kprof_launch_record *launch, const expectation *expected)
{
    char path[sizeof group.folder + 64];
    uint64_t signature = 0;
    snprintf(path, sizeof path, "%s/%d-%llu.counterdata", group.folder, (int)getpid(),
             (unsigned long long)launch->launch);
    FILE *file = fopen(path, "re");
    if (!file || fread(&signature, sizeof signature, 1, file) != 1 || signature != expected->signature)
        sim_violation("the counter data of tag %u was not kept", tag_of(launch));
    fclose(file);
}

/* Add what the launches of the step have by themselves. */
static void add_step(unsigned lane, unsigned number, long double *sums)
{
    sim_step nodes[SIM_NODES];
    const sim_step *step = &group.program.steps[lane][number], *launches = step;
    unsigned count = step->op == SIM_LAUNCH || (step->op == SIM_GRAPH_LAUNCH && group.whole_graphs);
    if (step->op == SIM_GRAPH_LAUNCH && !group.whole_graphs) {
        count = sim_program_nodes(&group.program, lane, number, nodes);
        launches = nodes;
    }
    for (unsigned i = 0; i < count; i++) {
        const bool is_graph = launches[i].op == SIM_GRAPH_LAUNCH;
        const bool is_counted = launches[i].op == SIM_LAUNCH || is_graph;
        const uint64_t signature = is_counted ? group.expected[sim.program][launches[i].tag].signature : 0;
        const bool has_run = signature != 0 || (is_graph && !launches[i].refused); /* a graph may have no kernel */
        for (unsigned m = 0; m < METRICS && has_run; m++)
            sums[m] += sim_value(signature, m);
    }
}

/* The values of a range that was repeated are sums over its launches, as each has them alone: all until the profiler is
 * stopped. In programs of several threads nobody knows which these are. */
static void check_sums(const kprof_launch_record *range)
{
    const unsigned lane = 0;
    long double sums[METRICS] = {0};
    bool is_in = false;
    for (unsigned i = 0; i < group.program.counts[lane]; i++) {
        const sim_step *step = &group.program.steps[lane][i];
        const bool is_first = (step->op == SIM_LAUNCH || step->op == SIM_GRAPH_LAUNCH) && step->tag == tag_of(range);
        if (is_in && step->op == SIM_PROFILER && step->value % 2 == 0)
            break;
        is_in = is_in || is_first;
        if (is_in)
            add_step(lane, i, sums);
    }
    for (unsigned m = 0; m < METRICS; m++)
        if (!isnan(range->values[m]) && range->values[m] != (double)sums[m])
            sim_violation("tag %u, a range: metric %u is %.0f, and the sum over its launches %.0Lf", tag_of(range), m,
                          range->values[m], sums[m]);
}

/* A range has the tag of its first launch, and values of all that ran in it, or the reason why not. */
static void check_range(const kprof_launch_record *range)
{
    if (range->block[0] > 0 || range->grid[0] > 0)
        sim_violation("tag %u: a launch is reported where ranges are measured", tag_of(range));
    if (range->value_count == 0 && range->reason[0] == '\0')
        sim_violation("tag %u has neither values nor a reason", tag_of(range));
    const bool is_repeated = range->mode == KPROF_REPLAY_RANGE;
    if (range->value_count > 0 &&
        (range->value_count != METRICS || (range->mode != KPROF_REPLAY_MULTIPLEX && !is_repeated)))
        sim_violation("tag %u has %u values", tag_of(range), range->value_count);
    if (range->value_count > 0 && is_repeated && group.traits.lanes == 1)
        check_sums(range);
    group.repeated_ranges += range->value_count > 0 && is_repeated;
}

static void check_launch(const kprof_launch_record *launch)
{
    if (program_of(launch) >= group.programs || tag_of(launch) >= SIM_TAGS)
        sim_violation("a launch is reported that never was");
    load_program(program_of(launch));
    if (group.replay_choice == KPROF_RANGES) {
        check_range(launch);
        return;
    }
    expectation *expected = &group.expected[program_of(launch)][tag_of(launch)];
    if (!expected->chosen || expected->reports++ > 0)
        sim_violation("tag %u is reported, but was not chosen or is reported already", tag_of(launch));
    const bool may_stay = has_waits() && group.traits.lanes > 1; /* a free waits for work that waits */
    if ((!may_stay && strstr(launch->reason, "another thread stayed")) || strstr(launch->reason, "another process"))
        sim_violation("tag %u: %s", tag_of(launch), launch->reason);
    if (launch->value_count == 0 && launch->reason[0] == '\0')
        sim_violation("tag %u has neither values nor a reason", tag_of(launch));
    if (launch->value_count == 0 && !expected->uncertain && !is_excused(launch))
        sim_violation("tag %u has no values: %s", tag_of(launch), launch->reason);
    if (launch->value_count > 0 && (expected->signature != 0 || !expected->uncertain))
        check_values(launch, expected);
    if (launch->value_count > 0)
        check_witnesses(launch);
    bool is_shared = group.traits.captures && !measures_whole_graphs(); /* beside a graph, launches share a batch */
    if (launch->value_count > 0 && group.keeps_data && !is_shared && (expected->signature != 0 || !expected->uncertain))
        check_kept(launch, expected);
}

static void check_all_reported(void)
{
    for (unsigned number = 0; number < group.programs && group.replay_choice != KPROF_RANGES; number++)
        for (unsigned tag = 0; tag < SIM_TAGS; tag++)
            if (group.expected[number][tag].chosen && group.expected[number][tag].reports == 0 &&
                !group.expected[number][tag].perhaps && !group.expected[number][tag].disarmed) {
                load_program(number);
                sim_violation("tag %u was chosen, but is not reported", tag);
            }
}

/* Samples are told of before or after their parts. */
static void note_part(const kprof_launch_record *launch)
{
    const char *told = strstr(launch->reason, PART_OF);
    if (!told)
        return;
    part *parts = realloc(group.parts, (group.part_count + 1) * sizeof *parts);
    if (!parts || program_of(launch) >= group.programs || tag_of(launch) >= SIM_TAGS)
        sim_violation("the test itself: no memory, or a launch is reported that never was");
    group.parts = parts;
    group.parts[group.part_count++] = (part){.sample = strtoull(told + strlen(PART_OF), NULL, 10),
                                             .signature = group.expected[program_of(launch)][tag_of(launch)].signature};
}

static kprof_spool_reader *open_spool(void)
{
    char path[sizeof group.folder + 64];
    kprof_spool_reader *reader;
    snprintf(path, sizeof path, "%s/%d-0.spool", group.folder, (int)getpid());
    check(kprof_spool_reader_open(AT_FDCWD, path, &reader));
    return reader;
}

static void note_parts(void)
{
    kprof_spool_reader *reader = open_spool();
    kprof_record record;
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD)
        if (record.type == KPROF_RECORD_LAUNCH)
            note_part(&record.launch);
    kprof_spool_reader_close(reader);
}

static void note_launch(const kprof_launch_record *launch)
{
    told_launch *told = realloc(group.told, (group.told_count + 1) * sizeof *told);
    if (!told)
        sim_violation("the test itself: no memory");
    group.told = told;
    group.told[group.told_count++] =
        (told_launch){.position = launch->launch,
                      .program = program_of(launch),
                      .tag = tag_of(launch),
                      .replayed = launch->mode == KPROF_REPLAY_BATCH && !launch->reason[0]};
}

static void note_code(const kprof_code_record *code)
{
    char path[sizeof group.folder + 300], content[64];
    snprintf(path, sizeof path, "%s/%s", group.folder, code->file);
    FILE *file = fopen(path, "re");
    if (code->crc >> 8 != 0x510000 || (group.code >> (code->crc & 63) & 1))
        sim_violation("code %llx is told, twice or of nobody", (unsigned long long)code->crc);
    if (!file || fread(content, 1, sizeof content, file) != code->bytes)
        sim_violation("the code of %s is not there", code->file);
    fclose(file);
    group.code |= UINT64_C(1) << (code->crc & 63);
}

/* Its launch was reported before, and so was the code. */
static void note_instructions(const kprof_instructions_record *record)
{
    told_launch *launch = NULL;
    for (size_t i = group.told_count; i-- > 0 && !launch;)
        launch = group.told[i].position == record->launch ? &group.told[i] : NULL;
    if (!launch || !(record->sampled ? group.samples : group.counts))
        sim_violation("instructions are told of no launch, or nobody asked for them");
    load_program(launch->program);
    const size_t width = 1 + (size_t)record->name_count;
    launch->records[record->sampled]++;
    launch->functions[record->sampled] += record->value_count > 0;
    if ((record->value_count > 0) == (record->reason[0] != '\0') || record->value_count % width != 0)
        sim_violation("tag %u has values of its instructions and a reason, or neither", launch->tag);
    if (record->value_count == 0) {
        const bool in_own_run = group.passes == 1 && strstr(record->reason, "the launch was not repeated");
        const bool planted =
            sim.plants_errors && strstr(record->reason, record->sampled ? "(simulated)" : "no instruction");
        /* Of the first context, and while no other thread has the gate, samples are enabled in time. */
        const bool came_before = (group.traits.lanes > 1 || !group.traits.one_context) && record->sampled &&
                                 strstr(record->reason, "was loaded before");
        if (launch->replayed && !planted && !came_before && !in_own_run && !sim.faulty && !sim.slow &&
            !group.traits.dice && !group.whole_graphs)
            sim_violation("tag %u was repeated, and its instructions have no %s: %s", launch->tag,
                          record->sampled ? "samples" : "counters", record->reason);
        return;
    }
    if (record->name_count != COUNTERS || !(group.code >> (record->crc & 63) & 1))
        sim_violation("tag %u has %u counters of its instructions, or their code is not told", launch->tag,
                      record->name_count);
    for (size_t i = 0; i < record->value_count; i++)
        if (i % width > 0)
            launch->sums[record->sampled][i % width - 1] += record->values[i];
}

/* The sums over a launch's instructions are what the launch has by itself. */
static void check_instructions(void)
{
    for (size_t i = 0; i < group.told_count; i++) {
        const told_launch *launch = &group.told[i];
        const uint64_t signature = group.expected[launch->program][launch->tag].signature;
        load_program(launch->program);
        for (unsigned kind = 0; kind < 2; kind++) {
            if (!(kind ? group.samples : group.counts))
                continue;
            if (launch->records[kind] == 0 || (launch->functions[kind] > 0 && launch->functions[kind] != 2))
                sim_violation("tag %u: %u functions are told, kind %u", launch->tag, launch->functions[kind], kind);
            for (unsigned k = 0; k < COUNTERS && launch->functions[kind] > 0 && signature != 0; k++)
                if (launch->sums[kind][k] != (kind ? sim_samples(signature, k) : sim_value(signature, k)))
                    sim_violation("tag %u: its instructions have another sum than it has alone, kind %u", launch->tag,
                                  kind);
        }
    }
}

/* No launch is counted twice, and none of the engine's is. Kernels of a graph that is not followed are no launches. */
static void check_census(const uint64_t *counted, uint64_t launches)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < MOST_ROWS; i++)
        sum += counted[i];
    if ((sum > launches && !group.traits.captures) ||
        (sim.keeps_activities && !sim.interrupt && launches > 0 && sum == 0))
        sim_violation("the census has %llu of %llu launches", (unsigned long long)sum, (unsigned long long)launches);
}

static void check_spool(void)
{
    kprof_record record;
    uint64_t counted[MOST_ROWS] = {0};
    unsigned lists = 0;
    note_parts();
    kprof_spool_reader *reader = open_spool();
    while (kprof_spool_next(reader, &record) == KPROF_SPOOL_RECORD) {
        if (record.type == KPROF_RECORD_LAUNCH) {
            check_launch(&record.launch);
            note_launch(&record.launch);
        }
        if (record.type == KPROF_RECORD_CENSUS && record.census.row <= MOST_ROWS)
            counted[record.census.row - 1] = record.census.launches;
        if (record.type == KPROF_RECORD_END)
            check_census(counted, record.end.launches);
        if (record.type == KPROF_RECORD_CODE)
            note_code(&record.code);
        if (record.type == KPROF_RECORD_INSTRUCTIONS)
            note_instructions(&record.instructions);
        if (record.type == KPROF_RECORD_METRICS && ++lists > 1)
            sim_violation("the metrics of a chip are named twice");
        if (record.type == KPROF_RECORD_MESSAGE && record.message.level == KPROF_LOG_ERROR &&
            !strstr(record.message.text, DISARMED))
            sim_violation("the engine says: %s", record.message.text);
    }
    kprof_spool_reader_close(reader);
    check_instructions();
    check_all_reported();
}

static void remove_folder(void)
{
    char path[sizeof group.folder + 300];
    DIR *dir = opendir(group.folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", group.folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(group.folder);
}

static void run_group(uint64_t first, unsigned programs, unsigned lanes)
{
    sim.on_violation = print_group;
    signal(SIGALRM, on_alarm);
    choose_group(first, programs, lanes);
    group.expected = calloc(programs, sizeof *group.expected);
    if (!group.expected)
        sim_violation("the test itself: no memory");
    start_engine();
    start_arming();
    for (unsigned number = 0; number < programs; number++) {
        alarm(TIME_LIMIT_S);
        run_program(number);
    }
    alarm(TIME_LIMIT_S);
    end_arming();
    finish();
    atomic_store(&kprof_engine.process.armed, false);
    check_spool();
    remove_folder();
    free(group.expected);
    free(group.parts);
    free(group.told);
}

static bool run_in_child(uint64_t first, unsigned programs, unsigned lanes)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        run_group(first, programs, lanes);
        exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    unsigned lanes = argc > 1 ? (unsigned)atoi(argv[1]) : 1, bad = 0;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, count = argc > 3 ? strtoull(argv[3], NULL, 10) : 100;
    group.only_ranges = argc > 4;
    if (lanes < 1 || lanes > SIM_LANES) {
        fprintf(stderr, "usage: random THREADS (1 to %d) FIRST COUNT [ranges]\n", SIM_LANES);
        return 2;
    }
    for (uint64_t next = first; next < first + count && bad < 3;) {
        uint64_t end = is_disarmed(next, lanes) ? next + DISARMED_GROUP : (next / GROUP + 1) * GROUP;
        unsigned programs = (unsigned)((end < first + count ? end : first + count) - next);
        if (!run_in_child(next, programs, lanes)) {
            fprintf(stderr, "programs %llu to %llu failed\n", (unsigned long long)next,
                    (unsigned long long)(next + programs - 1));
            bad++;
        }
        next += programs;
    }
    return bad > 0;
}
