/* The command line tells the injection library what to do in one struct. It crosses the process boundary once, encoded
 * to the file "config" in the session directory. KPROF_SESSION_DIR holds the absolute path of that directory. */
#pragma once

#include "core/filter.h"
#include "core/strbuf.h"

#define KPROF_SESSION_ENV "KPROF_SESSION_DIR"
#define KPROF_CONFIG_FILE "config"

/* A chip has at most this many witnesses, and only its first passes, this many, can have them. */
#define KPROF_MAX_WITNESSES  6
#define KPROF_WITNESS_PASSES 64

/* Three of the witnesses: the time of a range, its cycles with a kernel on the GPU, and all of its cycles on the same
 * clock. The host pushes a range before its kernel begins, so that the last two differ. */
#define KPROF_TIME_WITNESS  "gpu__time_active.sum"
#define KPROF_KERNEL_CYCLES "FE_A.TriageCompute.gr__compute_cycles_active_queue_async.sum"
#define KPROF_RANGE_CYCLES  "fe__cycles_elapsed.sum"

/* A config image, which schedules metrics into passes. */
typedef struct kprof_chip_image {
    uint8_t *data; /* [size], owned */
    size_t size;   /* 0: there is no such image */
} kprof_chip_image;

/* Indices of `images`: these two are bits, of an image with all passes. */
enum {
    KPROF_IMAGE_WITNESSED = 1, /* has all witnesses; without the bit, only those that take no time */
    KPROF_IMAGE_PROVED = 2,    /* has one more pass in front, with the counters of `proof` alone */
    KPROF_IMAGE_PROOF = 4,     /* has that pass, and no other */
    KPROF_IMAGES = 5
};

/* One replay of a launch samples these metrics over time. The first name tells whether the GPU is at work. */
typedef struct kprof_chip_timeline {
    kprof_strlist metrics;
    kprof_chip_image image;
} kprof_chip_timeline;

/* Place of the name in a proof that counts reads alone; those before it count all traffic. */
#define KPROF_PROOF_READS 2

/* The plan of one chip: hardware metric names for the Profiler Host API, in the order of a launch's values, and the
 * config images that schedule them in the same passes. Passes count from 0, without the pass of the proof. */
typedef struct kprof_chip_metrics {
    char *chip; /* "GH100" */
    kprof_strlist metrics;
    uint32_t *last_passes;                        /* [metrics.count], owned: the last pass of a metric */
    uint32_t *patched;                            /* [metrics.count], owned: 1: CUPTI patches the kernels to count it */
    kprof_strlist witnesses;                      /* names that a witnessed image has beside `metrics` */
    uint64_t witness_passes[KPROF_MAX_WITNESSES]; /* bit P: in pass P */
    kprof_strlist proof; /* names that count the SMs' traffic to host and peer memory, and on most chips at
                            KPROF_PROOF_READS what they read of the host's; empty: there is no proof */
    kprof_chip_image images[KPROF_IMAGES]; /* [0] always exists when pass_count > 0 */
    uint32_t pass_count;
    bool patches_code;              /* true: in some pass CUPTI patches the kernels to count */
    kprof_chip_timeline *timelines; /* [timeline_count], owned: of further replays, without which there are none */
    size_t timeline_count;
} kprof_chip_metrics;

/* Is the witness in several passes, so that it compares them? Others tell how much of a range its kernel takes. */
bool kprof_witness_compares(const kprof_chip_metrics *metrics, size_t witness);

/* Return the image of this index. If a witnessed image is missing, return the unwitnessed one. NULL if the image is to
 * have a proof and there is none. */
const kprof_chip_image *kprof_chip_image_choose(const kprof_chip_metrics *metrics, unsigned index);

typedef enum kprof_cache_control {
    KPROF_CACHE_FLUSH_ALL,
    KPROF_CACHE_FLUSH_NONE,
    KPROF_CACHE_FLUSH_L2 /* by copying, which leaves the other caches alone */
} kprof_cache_control;
/* A launch is replayed in all passes, or it is multiplexed: measured in one pass, in its own run. */
typedef enum kprof_replay_choice {
    KPROF_REPLAY_WHERE_PROVED, /* replayed where that is proved to be harmless; else multiplexed */
    KPROF_REPLAY_ONLY,         /* replayed, or not measured */
    KPROF_MULTIPLEX_ALL,
    KPROF_RANGES, /* each range of the application is measured as one, replayed where that is proved to be harmless */
    /* The command line runs the program for each pass, and tells the recorder another choice: */
    KPROF_REPLAY_APPLICATION,
    KPROF_RANGES_OF_RUNS /* the same, and each range is multiplexed as one */
} kprof_replay_choice;
/* Are ranges of the application measured, and no launches? `choice`: a kprof_replay_choice, as below. */
bool kprof_replay_is_of_ranges(int choice);
/* Does the program run once for each pass? */
bool kprof_replay_is_of_runs(int choice);
/* Spell a choice of ranges or of runs as --replay-mode does. */
const char *kprof_replay_name(int choice);
/* Launches of several runs of a program are the same where these agree, and their order. */
typedef enum kprof_run_match {
    KPROF_MATCH_NAME, /* process, device and kernel */
    KPROF_MATCH_GRID, /* and grid and block */
    KPROF_MATCH_ALL   /* and context and stream */
} kprof_run_match;
typedef enum kprof_run_order {
    KPROF_ORDER_STRICT,   /* all launches of a process come in one order, and each run has all */
    KPROF_ORDER_BALANCED, /* those that match do, and each run has all */
    KPROF_ORDER_RELAXED   /* what a run lacks is left out */
} kprof_run_order;
/* A CUDA graph is as many launches as it has kernels, or one. */
typedef enum kprof_graph_profiling { KPROF_GRAPH_NODES, KPROF_GRAPH_WHOLE } kprof_graph_profiling;
/* Witnesses that take time go to all batches, or only to batches that are large enough. */
typedef enum kprof_witness_control { KPROF_WITNESSES_ALL, KPROF_WITNESSES_AUTO } kprof_witness_control;

/* The default number of samples of each kernel and shape is enough for a median and its spread. */
#define KPROF_MULTIPLEX_SAMPLES 32
#define KPROF_MOST_SAMPLES      100000

/* Saving memory leaves this much of the device free, for the driver, CUPTI and the application. */
#define KPROF_DEVICE_RESERVE_BYTES ((size_t)2 << 30)

/* The capacity of a batch: host memory for counter data and launches, unless the user asks for another number, and
 * launches at most. With 2048 launches CUPTI starts in 3.2 s; with tens of thousands it does not return. */
#define KPROF_BATCH_BYTES         ((size_t)768 << 20)
#define KPROF_BATCH_MOST_LAUNCHES 2048
/* A launch has 95e3 to 160e3 bytes of counter data in each pass. */
#define KPROF_COUNTER_BYTES_PER_PASS 110000

/* The periods of samples that CUPTI takes, as powers of two: 32 cycles to 2^31. The option's choices are these, and 0:
 * as long as the kernel asks for. */
#define KPROF_SHORTEST_PERIOD 5
#define KPROF_LONGEST_PERIOD  31
/* The period until it is known how long launches take. */
#define KPROF_FIRST_PERIOD 12

/* Replays of a batch that take samples, where launches need several periods, unless the user gives another number. */
#define KPROF_SAMPLING_PASSES 3

/* The RECORDER rows of core/recorder_options.h make the members that options set. */
typedef struct kprof_config {
    kprof_filter_spec filter;
    kprof_chip_metrics *chips; /* [chip_count] */
    size_t chip_count;
#define OPTION(place, type, field, ...) KPROF_FOR_RECORDER_##place(KPROF_OPTION_FIELD(type, field))
#include "core/recorder_options.h"
#undef OPTION
    kprof_strlist instruction_metrics; /* CUPTI's names of what is counted by instruction */
    bool samples;                      /* the program counter is sampled */
    bool only_records;                 /* a trace or a census is made, and no launch is measured */
    bool tells_all;                    /* also launches that wait for another pass, where -c counts samples */
    uint32_t census_top;               /* beside a census: only kernels with most time so far are measured; 0: all */
    bool verbose;
    char *counter_data_dir; /* absolute; each launch's counter data image is kept there; NULL: nowhere */
    int64_t root_pid;       /* the application's first process; 0 when not known */
} kprof_config;

/* Append the encoding (magic, version, length-prefixed fields, little-endian) to `out`. */
kprof_status kprof_config_encode(const kprof_config *config, kprof_strbuf *out) KPROF_MUST_CHECK;
/* Decode; owns what it allocates. INTERNAL, with a logged reason, on anything that is not exactly one valid config. */
kprof_status kprof_config_decode(const void *data, size_t size, kprof_config *out) KPROF_MUST_CHECK;
/* Write to, or read from, `dir`/config (mode 0600). `dir` is absolute, belongs to this user and is closed to others
 * (core/folder.h); anything else is refused. */
kprof_status kprof_config_save(const kprof_config *config, const char *dir) KPROF_MUST_CHECK;
kprof_status kprof_config_load(const char *dir, kprof_config *out) KPROF_MUST_CHECK;
/* The same with another name of the file. */
kprof_status kprof_config_save_as(const kprof_config *config, const char *dir, const char *name) KPROF_MUST_CHECK;
kprof_status kprof_config_load_as(const char *dir, const char *name, kprof_config *out) KPROF_MUST_CHECK;
void kprof_config_free(kprof_config *config); /* members, not the struct */
