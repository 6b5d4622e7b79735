/* A simulated machine: contexts with streams that run late and out of step, memory of several kinds, kernels that are C
 * functions. The application side is sim_call, which does what a driver call does and has the hooks of cupti/target.h
 * called around it; backend.c is the side that the engine sees. Breaking the rules of the headers in src/cupti is a
 * violation, which ends the process. */
#pragma once

#include "core/config.h"
#include "cupti/snapshot.h"
#include "cupti/target.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SIM_CONTEXTS = 2,
    SIM_LANES = 4,          /* threads */
    SIM_COMMON = SIM_LANES, /* the machine has a part for each thread and a common one, which share contexts only */
    SIM_PARTS,
    SIM_LANE_STREAMS = 4,
    SIM_LANE_SLOTS = 20,
    SIM_STREAMS = SIM_PARTS * SIM_LANE_STREAMS, /* stream s is of context s / 2 % 2 and has one event */
    SIM_MODULES = 2 * SIM_STREAMS,
    SIM_SLOTS = SIM_PARTS * SIM_LANE_SLOTS, /* places for allocations; slot i is of context i % 2 */
    SIM_POOLED = 4, /* the first of a lane's slots at which pools have memory, one pool for each context */
    SIM_POOLS = SIM_PARTS * SIM_CONTEXTS,
    SIM_VARIABLES = 8, /* the first of a lane's slots that are module variables: one for each stream's module */
    SIM_MEMORIES = 12, /* the first that are physical memory, to be mapped at other slots; two of each context */
    SIM_SECONDS = 16,  /* the first that are variables of modules that came while the engine kept those before them */
    SIM_WORDS = 8,
    SIM_REASONS = 3,
    SIM_QUEUE = 64,
    SIM_NODES = 10,      /* of a graph, at most */
    SIM_STEP_TAGS = 512, /* those of steps; behind them are those of the graphs' nodes */
    SIM_LANE_TAGS = (SIM_NODES + 1) * SIM_STEP_TAGS,
    SIM_TAGS = SIM_LANES * SIM_LANE_TAGS,
    SIM_ERROR = 700, /* what a context in error says to every call */
    SIM_REFUSED = 1,
    SIM_NOT_READY = 600, /* to whoever asks for a stream that is at work */
};

/* For as long the engine may hold a call in which no work ends: long, so that all work ends in time however slow this
 * machine is, but for what waits for the program. */
#define SIM_LONG_HOLD_NS  INT64_C(60000000000)
#define SIM_SHORT_HOLD_NS INT64_C(3000000)
/* The rule of the engine: a call is held no longer while no work ends. Kernels that give up do so after as long. */
#define SIM_MOST_HELD_NS INT64_C(100000000)

typedef enum sim_op {
    SIM_LAUNCH,
    SIM_GRAPH_LAUNCH,
    SIM_ALLOC,
    SIM_FREE,
    SIM_POOL_ALLOC, /* in the order of the stream, from the pool of the slot's part and context */
    SIM_POOL_FREE,
    SIM_POOL_LIMIT, /* `value`: how many slots the pool of slot `a` keeps when the host waits */
    SIM_POOL_TRIM,  /* likewise, now */
    SIM_POOL_ASK,   /* how many it keeps, and has */
    SIM_PUT_BACK,   /* the engine's own: managed memory as the host left it, by `kept` */
    SIM_MAP,        /* physical memory `b` at slot `a`, and perhaps at others too; whichever context is current */
    SIM_UNMAP,      /* waits for nothing, and the memory keeps what it has */
    SIM_COPY_IN,
    SIM_COPY,
    SIM_COPY_OUT,
    SIM_MEMSET,
    SIM_UNKNOWN,
    SIM_COPY_OUT_ASYNC, /* to the host's buffer of the stream, in its order */
    SIM_COPY_IN_ASYNC,  /* from there */
    SIM_HOST_FUNCTION,  /* changes it, in the order of the stream */
    SIM_GRAPH_CHANGE,   /* node `node` of the graph that was captured in `from` gets the kernel, slots and value */
    SIM_RELOAD, /* unload the module of a slot that is a variable, and load it again; or it is unloaded already */
    SIM_RECORD,
    SIM_STREAM_WAIT,
    SIM_SYNC_STREAM,
    SIM_SYNC_CONTEXT,
    SIM_QUERY,
    SIM_HOLD,       /* the stream waits for what the host writes later */
    SIM_PREFETCH,   /* managed memory moves to the device, in the order of the stream */
    SIM_VALUE_WAIT, /* the stream waits for the signal `flag` of stream `from`, or for the host's flag of its own */
    SIM_BEGIN_CAPTURE,
    SIM_END_CAPTURE,
    SIM_DESTROY_CONTEXT,
    SIM_HOST_WRITE, /* from here on: what the host does without a call, as with shared memory */
    SIM_HOST_READ,
    SIM_BUFFER_WRITE, /* the host's buffer of a stream, which copies of the stream's graph move from and to */
    SIM_BUFFER_READ,
    SIM_RELEASE,   /* the host lets the stream go on after SIM_HOLD */
    SIM_TAKE_TURN, /* wait until it is this thread's turn to use the common part */
    SIM_PASS_TURN,
    SIM_PROFILER, /* cudaProfilerStart, or Stop where `value` is even */
    SIM_OPS,
    SIM_FOLLOW = SIM_OPS, /* the engine's own, behind a launch of the program */
    SIM_KEEP              /* likewise, before or behind a copy to or from the host: note what memory has */
} sim_op;

typedef enum sim_kernel {
    SIM_ADD,
    SIM_SCALE,
    SIM_MOVE,
    SIM_SWAP,
    SIM_SUM,
    SIM_COUNT, /* adds to its module's variable */
    SIM_PRINT, /* has a side effect */
    SIM_CRASH, /* leaves the context in error */
    SIM_TALLY, /* adds to its module's variable; in whatever order, the sum is the same */
    SIM_DICE,  /* computes something else in each replay */
    SIM_SPIN,  /* waits until the host writes its stream's flag; with a `value` it changes memory then */
    SIM_DELAY, /* the same, but gives up, and computes something else then */
    SIM_PEER,  /* waits for a signal, which later work of another stream gives */
    SIM_KERNELS
} sim_kernel;

typedef struct sim_function {
    const char *name;
    unsigned module; /* the stream that launches its kernels, and SIM_STREAMS more of a module with a second variable */
    sim_kernel kernel;
} sim_function;

/* One step of a program: a driver call with its arguments. What an operation does not need is 0. */
typedef struct sim_step {
    sim_op op;
    sim_kernel kernel;
    sim_function *function; /* of a launch; NULL: that of `kernel` in the stream's module */
    unsigned stream, from;  /* from: the stream whose event is waited for, or in which the graph was captured */
    unsigned a, b;          /* slots */
    uint64_t value;
    uint64_t flag;   /* SIM_SPIN, SIM_DELAY: waits for it; SIM_PEER, SIM_VALUE_WAIT: for this signal in `from`;
                      * SIM_RELEASE: the host's */
    uint64_t signal; /* that the work gives at its end; 0: none */
    int64_t slow_ms; /* of a launch: it takes so long, unless the host waits for it */
    unsigned tag;    /* of a launch: its number in the program */
    unsigned turn;
    unsigned node;                /* of SIM_GRAPH_CHANGE */
    uint64_t module;              /* generation of the variable of a launch's module, or a graph's; 0: any */
    bool second;                  /* that variable is one of SIM_SECONDS */
    struct kprof_operation *kept; /* of SIM_PUT_BACK and SIM_KEEP; NULL: nobody wants it any more */
    bool shared;                  /* of SIM_ALLOC: host and device both have it */
    bool exported;                /* of SIM_ALLOC: another device has it, too */
    bool large;                   /* of SIM_COPY_OUT: it stands for one of 64 MiB */
    bool refused;                 /* the driver returns an error and does nothing */
    bool unsaved;                 /* of a graph: it sets memory that is not saved */
    bool uncopyable;              /* its arguments cannot be kept for later */
    bool legacy;                  /* one of the driver's oldest entry points: it cannot be repeated */
    bool hidden;                  /* its arguments do not show that it takes memory of the host */
    bool nested;                  /* the driver makes a call of its own inside this one */
    bool per_thread;              /* its stream is the default one of the thread */
    bool polls;                   /* of SIM_QUERY: the program asks until the stream's work is done */
    bool detached;                /* of SIM_MAP and SIM_UNMAP: no context is current */
} sim_step;

typedef struct sim_work {
    sim_step step;
    uint64_t number; /* of the program's: in the order in which it was submitted */
    uint64_t event;  /* RECORD, HOLD: its number; STREAM_WAIT: the number waited for */
    size_t range;    /* of a launch: one more than the index of the range that it was submitted in; 0: none */
    unsigned lane;   /* whose thread submitted it */
    bool has_begun;
    int64_t held_before_ns; /* of that thread, until then */
    int64_t ends_ms;        /* sim.now_ms when a slow launch ends */
    bool is_replay;         /* the engine's own */
    uint32_t note;          /* of a node: what the engine wants to keep for it */
} sim_work;

typedef struct sim_queue {
    sim_work items[SIM_QUEUE];
    unsigned count;
} sim_queue;

typedef struct sim_stream {
    sim_queue queue, graph; /* graph: what was captured last */
    bool capturing;
    uint64_t submitted, finished; /* work */
    uint64_t recorded, completed; /* of its event */
    uint64_t held, released;      /* of its holds */
    uint64_t flag, repeated_flag; /* memory of the host that its kernels wait for; as a replay finds it */
    uint64_t buffer;              /* of the host: what memory was filled with, or a hash of what it had */
} sim_stream;

typedef struct sim_slot {
    bool live, shared, exported;
    bool was_mapped;     /* physical memory that is mapped, or was */
    bool pooled;         /* it is a pool's */
    bool cached;         /* the program has freed it, and its pool still has it */
    bool kept;           /* the program has freed it, or is about to, and a snapshot keeps it */
    unsigned memory;     /* slot that has its words: itself, or the physical memory that is mapped there */
    uint64_t generation; /* tells allocations and mappings in one slot apart */
    bool is_hosts;       /* managed memory that the host used after the device did */
    uint64_t foreign;    /* a word that another device changes at any time: that device counts with it */
    uint64_t counted;    /* how far it is by its own account */
    _Atomic uint64_t words[SIM_WORDS];
} sim_slot;

/* A pool gives memory back when the host waits. */
typedef struct sim_pool {
    uint64_t limit; /* slots that it keeps; UINT64_MAX: all */
    bool held;      /* the engine has it keep all */
} sim_pool;

/* The output of a kernel, until the driver writes it. */
typedef struct sim_output {
    unsigned stream;
    uint64_t value;
} sim_output;

typedef struct sim_context {
    bool failed;
    bool cold;                           /* nothing used the caches since they were flushed */
    uint64_t cold_before;                /* number of the work before which they are, in the order of its stream */
    struct kprof_profiler *armed;        /* between its start and stop */
    bool has_run_pass;                   /* the profiler's object, which lives */
    bool ran_unarmed;                    /* a pass, while samples of instructions were not enabled */
    uint64_t loaded, loaded_unarmed;     /* kernels, as bits: all, and those that came while no samples were enabled */
    struct kprof_instructions *counting; /* counters of instructions are enabled */
    struct kprof_pc_samples *sampling;   /* samples of instructions are enabled */
    struct kprof_pm_sampling *over_time; /* samples over time are enabled */
    sim_queue replays[KPROF_LANES];      /* the engine's own streams */
} sim_context;

typedef struct sim_machine {
    pthread_mutex_t mutex;  /* guards all but the words of shared memory */
    pthread_cond_t changed; /* a stream was released, or there is a waiter less, or another turn */
    sim_context contexts[SIM_CONTEXTS];
    sim_stream streams[SIM_STREAMS];
    sim_slot slots[SIM_SLOTS];
    sim_pool pools[SIM_POOLS];
    uint64_t printed[SIM_STREAMS]; /* what kernels printed, in their order on the stream */
    sim_output output[SIM_QUEUE];  /* [output_count]: what the driver has yet to write */
    unsigned output_count, output_seen;
    bool keeps_counting;
    bool drops_output;             /* the engine wants it dropped */
    uint64_t signatures[SIM_TAGS]; /* of each launch that ran: kernel, arguments and what it read; 0: did not run */
    unsigned captures;
    bool shares_memory, shares_with_devices, waits_for_host, runs_host_code, has_managed;
    bool managed_stays, managed_is_over; /* on the host while a batch is open; never again */
    bool holds_managed;                  /* there, now: kernels reach it as they do memory of the host */
    unsigned turn;                       /* number of the one that uses the common part */
    unsigned waiters;                    /* threads of the engine that wait for held work */
    uint64_t submitted, ended;           /* work of the program so far, and of all */
    int64_t held_ns[SIM_LANES];          /* for how long calls of the thread were held */
    int64_t now_ms;                      /* time of the device, which passes while calls are held */
    bool is_in_driver;                   /* in a call of the program, which may wait: slow launches end */
    uint64_t random;
    bool noted[SIM_MODULES];  /* modules whose variables snapshots hold */
    bool second[SIM_STREAMS]; /* modules whose variables are of SIM_SECONDS, by stream */
    atomic_uint unloads;      /* of modules that the engine kept */
    bool returned[SIM_TAGS];  /* launch calls that came back before the interruption, with the hooks called */
    bool hooked;              /* have the hooks called */
    bool tells_contexts;      /* they were told of all contexts */
    bool faulty;              /* the engine's side fails now and then */
    bool is_tight;            /* the application finds no space on the GPU now and then */
    bool slow;                /* a launch of the engine takes long now and then */
    bool jittery;             /* calls take different times, for programs of several threads */
    unsigned pauses;          /* how many captures may still take so long that the engine finds nothing to do */
    unsigned holds;           /* how many holds may still hold; later ones are released at once */
    bool has_default;         /* the first stream of each context is the default one, which others wait for */
    uint32_t independent;     /* streams that do not, as bits */
    bool may_wait;            /* work may wait for the program */
    bool has_flags;           /* for memory of the host */
    bool has_slow;            /* some launches take long */
    bool secret_holds;        /* nothing tells that work may wait for the host: it looks for what a later copy brings */
    bool flushes;             /* launches must be measured with cold caches */
    unsigned program;         /* number of the program that runs, for the records of its launches */
    size_t capacity;          /* of a profiler */
    uint32_t most_launches;   /* of a measurement, as the configuration has it; 0: any number */
    bool awaits;              /* graphs may wait for the host */
    bool pageable;            /* the host's buffers are, so that the driver may read them at once */
    bool changes_stream;      /* the next graph was in another stream before */
    bool tells;               /* graphs tell the host that it may use what they copied before they have ended */
    bool managed;          /* memory that the host has, too, is managed, and in reach of the device alone in a kernel */
    bool managed_is_large; /* too much of it to stay on the host while a batch is open */
    bool several_threads;  /* the application has them */
    bool refuses_frees;    /* the driver frees what the program names, whatever is put in its place */
    bool sees_output;      /* what kernels print can be seen and dropped */
    bool prints_nothing;   /* kernels that can print do not */
    bool hides_output;     /* the driver writes what kernels print in a way that cannot be seen or dropped */
    bool saves_host;       /* memory of the host may be saved where the application has one thread */
    bool host_is_saved;    /* a snapshot has it */
    bool hides_host;       /* arguments do not tell that a kernel takes memory of the host */
    bool all_witnesses;    /* in each measurement, not only in large ones */
    bool keeps_activities; /* of the application's launches; else timeline.c may */
    bool records_kernels;  /* activities are recorded, which would add to what passes count */
    bool is_even;          /* all launches have the same values, all passes count the same */
    bool plants_errors;    /* some kernels have no counters of their instructions, or no samples */
    bool few_shapes;       /* many launches have the same, so that a sample takes several */
    const char *second_chip; /* of device 1 */
    const kprof_target_hooks *hooks;
    atomic_bool is_unfollowed;    /* the hooks are not called for launches, waits and harmless calls */
    bool unseen[SIM_MODULES];     /* modules that had a kernel launched meanwhile */
    atomic_uint epoch, inside[2]; /* calls that are under way, by the parity of the epoch in which they began */
    bool ran_unseen;              /* a kernel of a module whose variables nobody had noted */
    void (*arm)(void);            /* called before calls of the program now and then; NULL: nothing */
    void (*interrupt)(void);      /* called before a call of the program, once; NULL: nothing */
    bool interrupted;
    void (*on_violation)(const char *what);
} sim_machine;

extern sim_machine sim;

/* A machine as new, with all modules loaded and nothing allocated; the fields from `hooked` on stay. */
void sim_reset(uint64_t seed);
/* Do a step on the calling thread; `out` takes what the host learns of memory: [SIM_WORDS], may be NULL. Returns the
 * driver's result. */
int sim_call(const sim_step *step, uint64_t *out);
/* Let all work finish, whatever the contexts' state. */
void sim_drain(void);
/* Does the calling thread make calls of the program? */
bool sim_is_programs(void);
/* Print why, tell on_violation, and end the process. */
_Noreturn void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t sim_hash(uint64_t hash, uint64_t value);
uint64_t sim_random(uint64_t *state);
/* Return the value of counter `metric` for a launch; on an even machine it is 1000.5 + metric. */
double sim_value(uint64_t signature, size_t metric);
/* How many samples the launch has for one of SIM_REASONS reasons. */
double sim_samples(uint64_t signature, size_t reason);
/* Samples over time of a launch, and the value of one. */
#define SIM_TIME_SAMPLES 10
double sim_time_value(uint64_t signature, size_t metric, unsigned sample);
/* What a witness counts in a pass. */
double sim_witness_in(uint32_t pass);
/* So begin the names of witnesses that take time. */
#define SIM_DEAR "TPC."

/* The width of its grid: the tag, or one of a few numbers. */
uint32_t sim_shape(const sim_step *step);
/* The tag of a node's launch, of a launch of its graph that has this tag. */
unsigned sim_node_tag(unsigned tag, unsigned node);
/* The call that a step makes; valid as long as the step is. */
kprof_call sim_describe(const sim_step *step);
/* Return the words of a slot, [SIM_WORDS]; a violation when nothing is there. */
_Atomic uint64_t *sim_words(unsigned slot);
const char *sim_op_name(sim_op op);
unsigned sim_context_of_stream(unsigned stream);
/* Does work of the one stream come behind what was submitted to the other before, without an event? */
bool sim_is_ordered(unsigned stream, unsigned other);
/* The number of the stream that the engine names; `context`: whose default stream it may be. */
unsigned sim_stream_of(const void *handle, unsigned context);
unsigned sim_variable_of_stream(unsigned stream);
/* Where what the program calls this slot is now: the variable of a module may be a second one. */
unsigned sim_place_of(unsigned slot);

/* For backend.c; with the mutex held. */
unsigned sim_variable_of_module(unsigned module);
/* Unload the module that has this variable. */
void sim_unload(unsigned variable);
sim_pool *sim_pool_of(unsigned slot);
/* Have the pool unmap what is freed, while it has more slots than these. */
void sim_pool_trim(const sim_pool *pool, uint64_t slots);
/* The host waits for work of the context: pools keep no more than they are to keep. */
void sim_pools_give_back(unsigned context);
void sim_drain_context(unsigned context);
/* SIM_PUT_BACK runs. */
void sim_put_back(const struct kprof_operation *kept);
/* Put SIM_KEEP into a stream of the program: when it runs, sim_keep is called. */
void sim_submit_keep(const sim_step *step, struct kprof_operation *kept);
void sim_keep(struct kprof_operation *kept);
/* Have what is queued for it keep nothing. */
void sim_forget_keep(const struct kprof_operation *kept);
/* Does some of its work wait for the host? */
bool sim_is_held(unsigned context);
/* Does it, or take long? */
bool sim_is_busy(unsigned context);
/* The driver waits without a limit for work that only takes long. */
void sim_end_slow(unsigned context);
/* The engine has waited for the context. If that was within a call of the program, and for work that waits for the
 * program, time has passed, unless its thread that waits is still about to. */
void sim_pass_time(unsigned context);
/* The engine waits for the work of a stream, within a call of the program and for so long at most. Has it ended? */
bool sim_await_stream(unsigned stream, int64_t limit_ns);
/* The same as sim_drain_context, where the engine waits: the mutex is let go while work is held. */
void sim_wait_for_context(unsigned context);
/* Another device: now and then it changes its word of the memory that it has. */
void sim_act_elsewhere(void);
bool sim_is_idle(unsigned context);
/* The same of the program's streams alone. */
bool sim_streams_are_idle(unsigned context);
/* Put work of the engine's into a stream of the program: when it runs, sim_has_followed is called. */
void sim_follow(unsigned stream);
/* In backend.c: the snapshot of the context that follows a launch saves what that has left. */
void sim_has_followed(unsigned context);
/* Likewise: memory goes while the program's work goes on. */
void sim_takes_away(unsigned slot);
/* Put work on the engine's own stream of a context. */
void sim_submit_replay(unsigned context, kprof_lane lane, const sim_step *step);
bool sim_chance(unsigned one_in);
/* A call that the engine makes itself: the hooks hear of it, too. */
void sim_own_call(kprof_call_kind kind, bool leaving);
/* The range of work that is submitted now, as in sim_work: the one that is pushed, or its own. The application must not
 * submit any that would become a range by itself. */
size_t sim_profiler_range(struct kprof_profiler *profiler, bool is_replay);
bool sim_profiler_is_automatic(const struct kprof_profiler *profiler);
/* Who else has the memory that a kernel uses; bits. */
typedef enum sim_reach {
    SIM_READS_HOST = 1, /* and nothing more */
    SIM_WRITES_HOST = 2,
    SIM_REACHES_DEVICE = 4 /* another device, but the memory is that of its own */
} sim_reach;

/* Note a kernel that is about to run in its range; `reach`: sim_reach bits. */
void sim_profiler_note(struct kprof_profiler *profiler, const sim_work *work, uint64_t signature, unsigned reach);

/* A launch is about to run whose instructions may be counted or sampled. */
void sim_instructions_note(sim_context *context, const sim_work *work, uint64_t signature);

extern __thread unsigned sim_current; /* context of this thread; SIM_CONTEXTS: none */
extern __thread unsigned sim_lane;    /* that this thread runs */
