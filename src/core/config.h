/* What the command line tells the injection library, in one struct that crosses the process boundary once: encoded to
 * the file "config" in the session directory, whose absolute path stands in KPROF_SESSION_DIR. */
#ifndef KPROF_CORE_CONFIG_H
#define KPROF_CORE_CONFIG_H

#include "core/filter.h"
#include "core/strbuf.h"

#define KPROF_SESSION_ENV "KPROF_SESSION_DIR"
#define KPROF_CONFIG_FILE "config"

/* Witnesses of a chip, at most; and the passes that may have them, the first so many. */
#define KPROF_MAX_WITNESSES  5
#define KPROF_WITNESS_PASSES 64

/* A config image, which schedules metrics into passes. */
typedef struct kprof_chip_image {
    uint8_t *data; /* [size], owned */
    size_t size;   /* 0: there is no such image */
} kprof_chip_image;

/* Bits of an index of `images`. */
enum {
    KPROF_IMAGE_WITNESSED = 1, /* has all witnesses; without the bit, only those that take no time */
    KPROF_IMAGE_PROVED = 2,    /* has one more pass in front, which holds nothing but the counters of `proof` */
    KPROF_IMAGES = 4
};

/* What to collect on one chip: hardware metric names for the Profiler Host API, in the order of a launch's values, and
 * the config images that schedule them in the same passes. Passes are counted from 0, without that of the proof. */
typedef struct kprof_chip_metrics {
    char *chip; /* "GH100" */
    kprof_strlist metrics;
    uint32_t *last_passes; /* [metrics.count], owned: the pass after which nothing more of a metric comes */
    uint32_t *patched; /* [metrics.count], owned: 1: it needs code that is patched into kernels as they are launched */
    kprof_strlist witnesses; /* names that a witnessed image has in several passes; none is among `metrics` */
    uint64_t witness_passes[KPROF_MAX_WITNESSES]; /* bit P: in pass P */
    kprof_strlist proof; /* names that count the SMs' traffic to host and peer memory; empty: there is no proof */
    kprof_chip_image images[KPROF_IMAGES]; /* [0] always exists when pass_count > 0 */
    uint32_t pass_count;
    bool patches_code; /* in some pass counters come from code that is patched into the kernels */
} kprof_chip_metrics;

/* Return the image of these bits, or the unwitnessed one where the witnessed one is missing; NULL where a proved image
 * is wanted and there is none. */
const kprof_chip_image *kprof_chip_image_choose(const kprof_chip_metrics *metrics, unsigned bits);

typedef enum kprof_cache_control { KPROF_CACHE_FLUSH_ALL, KPROF_CACHE_FLUSH_NONE } kprof_cache_control;
/* Which batches get the witnesses that take time: all, or those that are large enough. */
/* Which launches are replayed, in all passes each, and which are multiplexed: measured in one pass each, in their own
 * run.
 */
typedef enum kprof_replay_choice {
    KPROF_REPLAY_WHERE_PROVED, /* replayed where that is proved to be harmless; else multiplexed */
    KPROF_REPLAY_ONLY,         /* replayed, or not measured */
    KPROF_MULTIPLEX_ALL
} kprof_replay_choice;
/* A CUDA graph is as many launches as it has kernels, or one. */
typedef enum kprof_graph_profiling { KPROF_GRAPH_NODES, KPROF_GRAPH_WHOLE } kprof_graph_profiling;
typedef enum kprof_witness_control { KPROF_WITNESSES_ALL, KPROF_WITNESSES_AUTO } kprof_witness_control;

/* Samples of each kernel and shape, where nothing was asked for: enough for a median and its spread. */
#define KPROF_MULTIPLEX_SAMPLES 32
#define KPROF_MOST_SAMPLES      100000

/* What saving memory leaves free of the device, for the driver, CUPTI and the application. */
#define KPROF_DEVICE_RESERVE_BYTES ((size_t)2 << 30)

/* The room of a batch: host memory for counter data and launches at first, where nothing was asked for, and launches at
 * most. CUPTI was seen to start with so many, in 3.2 s; with tens of thousands it does not come back. */
#define KPROF_BATCH_FIRST_BYTES    ((size_t)192 << 20)
#define KPROF_BATCH_FIRST_LAUNCHES 512
#define KPROF_BATCH_MOST_LAUNCHES  2048
/* Where nothing was asked for, the room doubles so often: each time when full batches in a row have taken so many times
 * as long, besides their launches, as making the present room took. */
#define KPROF_BATCH_GROWTHS     2
#define KPROF_BATCH_GROWTH_COST 1.5
/* Counter data of a launch, about, for each pass: 95e3 to 140e3 bytes. */
#define KPROF_COUNTER_BYTES_PER_PASS 110000

typedef struct kprof_config {
    kprof_filter_spec filter;
    kprof_chip_metrics *chips; /* [chip_count] */
    size_t chip_count;
    kprof_cache_control cache_control;
    kprof_witness_control witness_control;
    bool follow_children; /* false: processes other than the first disarm */
    bool verbose;
    kprof_replay_choice replay_choice;
    kprof_graph_profiling graph_profiling;
    uint32_t multiplex_samples; /* of each kernel and shape, at most */
    uint32_t replay_batch;      /* how many launches a batch holds at most; 0: as many as memory allows */
    int64_t root_pid;           /* the application's first process; 0 when not known */
    char *counter_data_dir;     /* absolute; each launch's counter data image is kept there; NULL: nowhere */
} kprof_config;

/* Append the encoding (magic, version, length-prefixed fields, little-endian) to `out`. */
kprof_status kprof_config_encode(const kprof_config *config, kprof_strbuf *out) KPROF_MUST_CHECK;
/* Decode; owns what it allocates. INTERNAL, with a logged reason, on anything that is not exactly one valid config. */
kprof_status kprof_config_decode(const void *data, size_t size, kprof_config *out) KPROF_MUST_CHECK;
/* Write to, or read from, `dir`/config (mode 0600). `dir` is absolute, belongs to this user and is closed to others
 * (core/folder.h); anything else is refused. */
kprof_status kprof_config_save(const kprof_config *config, const char *dir) KPROF_MUST_CHECK;
kprof_status kprof_config_load(const char *dir, kprof_config *out) KPROF_MUST_CHECK;
void kprof_config_free(kprof_config *config); /* members, not the struct */

#endif
