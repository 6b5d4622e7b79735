/* Declares what the files of this folder share: the host object, and NVPW's metrics evaluator and scheduler of raw
 * counters. The evaluator knows what metrics are made of. CUPTI makes its config images with that scheduler too, so the
 * same counters give the same bytes. */
#ifndef KPROF_PLANNER_NVPW_H
#define KPROF_PLANNER_NVPW_H

#include "planner/host.h"

#include <stdbool.h>

struct kprof_cupti_api;                         /* load.h */
typedef struct kprof_name_memo kprof_name_memo; /* names.c: which names can be collected, as far as asked */
typedef struct kprof_evaluator kprof_evaluator;

struct kprof_host {
    const struct kprof_cupti_api *api;
    void *object; /* CUPTI's: for questions and evaluation; metrics are only added to objects of their own */
    char *chip;
    kprof_availability availability; /* image NULL: the chip in general */
    kprof_name_memo *memo;
    kprof_evaluator *evaluator; /* made on first use */
};

/* Append what tells the libraries behind the Profiler Host API from any others: CUPTI's version, and path, size and
 * time of libcupti and libnvperf_host. False when they cannot be opened or looked at. */
bool kprof_cupti_identify(kprof_strbuf *out);

void kprof_name_memo_free(kprof_name_memo *memo);

/* Does CUPTI take these names together? *certain is cleared when it had no memory to tell. */
bool kprof_host_takes(const kprof_host *host, const char **names, size_t count, bool *certain);
/* Fill in pass_count of an image as CUPTI tells it. */
kprof_status kprof_host_count_passes(const kprof_host *host, kprof_config_image *image) KPROF_MUST_CHECK;

/* The evaluator of a host, made on the first call. */
kprof_status kprof_evaluator_get(kprof_host *host, kprof_evaluator **out) KPROF_MUST_CHECK;
void kprof_evaluator_free(kprof_evaluator *evaluator);
/* Unit of a full name in base units ("byte/second"); caller frees. NULL when NVPW cannot tell. */
char *kprof_evaluator_unit(kprof_evaluator *evaluator, const char *name);
/* The raw counters that a full name is computed from, as NVPW names them, appended to `required`; and to `optional`
 * (NULL: not asked for) those that change the value when they are there. */
kprof_status kprof_evaluator_raw_counters(kprof_evaluator *evaluator, const char *name, kprof_strlist *required,
                                          kprof_strlist *optional) KPROF_MUST_CHECK;
/* Base names of the counters that a throughput metric is the greatest of, appended to `out`. */
kprof_status kprof_evaluator_members(kprof_evaluator *evaluator, const char *throughput,
                                     kprof_strlist *out) KPROF_MUST_CHECK;

/* Counters of one pass, in the order in which they were added. */
typedef struct kprof_placed_counters {
    kprof_strlist names;
    uint32_t *domains; /* [names.count]; 0: NVPW chooses */
} kprof_placed_counters;

/* Append a counter to the pass that is being written down; passes are ended with kprof_placement_end_pass. */
void kprof_placement_put(kprof_strbuf *placement, const char *counter, uint32_t domain);
void kprof_placement_end_pass(kprof_strbuf *placement);

/* The counters of a pass of `image`: as they were placed, or of CUPTI's own schedule. Caller frees *out, on failure
 * too. */
kprof_status kprof_placed_counters_read(const kprof_config_image *image, size_t pass,
                                        kprof_placed_counters *out) KPROF_MUST_CHECK;
void kprof_placed_counters_free(kprof_placed_counters *counters); /* members */

typedef struct kprof_raw_config kprof_raw_config;

/* More domains than any chip has. */
#define KPROF_RAW_DOMAINS_MAX 128
/* More places than kprof tries for one counter. */
#define KPROF_COUNTER_PLACES_MAX 8

/* For the chip and availability of `host`. */
kprof_status kprof_raw_config_open(const kprof_host *host, kprof_raw_config **out) KPROF_MUST_CHECK;
/* The same for one that can be done without: its failures are told at the debug level. */
kprof_status kprof_raw_config_open_quietly(const kprof_host *host, kprof_raw_config **out) KPROF_MUST_CHECK;
void kprof_raw_config_close(kprof_raw_config *config);

/* Open and close a pass group: what is added in between is packed together, and apart from other groups. */
kprof_status kprof_raw_config_begin(kprof_raw_config *config) KPROF_MUST_CHECK;
kprof_status kprof_raw_config_end(kprof_raw_config *config) KPROF_MUST_CHECK;

/* In an open group: where a counter can be read. */
typedef struct kprof_counter_places {
    uint32_t items[KPROF_COUNTER_PLACES_MAX]; /* domains, and groups of domains that work together */
    size_t count;
} kprof_counter_places;
kprof_status kprof_raw_config_places(const kprof_raw_config *config, const char *counter,
                                     kprof_counter_places *out) KPROF_MUST_CHECK;
/* One counter in one domain, or group of domains (0: NVPW chooses). */
typedef struct kprof_placed_counter {
    const char *name;
    uint32_t domain;
} kprof_placed_counter;
/* The properties that counters give to their pass. */
typedef struct kprof_pass_traits {
    bool in_sm;    /* some are in the SMs */
    bool in_sm_a;  /* some are read in the first domain of the SMs, wherever NVPW may place them */
    bool is_slow;  /* some are read where each launch takes ten times as long for it, or NVPW may place them there */
    bool is_patch; /* some are counted by code that is patched into the kernels */
} kprof_pass_traits;
/* Add those of a counter to *traits. */
kprof_status kprof_raw_config_add_traits(const kprof_raw_config *config, const kprof_placed_counter *counter,
                                         kprof_pass_traits *traits) KPROF_MUST_CHECK;
/* *out: all of them go into the passes that the group has, or into one when it is empty. */
kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out) KPROF_MUST_CHECK;
kprof_status kprof_raw_config_put(kprof_raw_config *config, const kprof_placed_counter *counter) KPROF_MUST_CHECK;
/* Add the counters of a pass where they were placed. */
kprof_status kprof_raw_config_put_all(kprof_raw_config *config, const kprof_placed_counters *counters) KPROF_MUST_CHECK;

/* In an open group: add counters; *out: all of them go into the passes that the group has without one more. */
kprof_status kprof_raw_config_add(kprof_raw_config *config, const kprof_strlist *counters) KPROF_MUST_CHECK;
kprof_status kprof_raw_config_fits(const kprof_raw_config *config, const kprof_strlist *counters,
                                   bool *out) KPROF_MUST_CHECK;
/* The config image of all groups so far, which CUPTI takes; caller frees *out. */
kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config,
                                    kprof_config_image *out) KPROF_MUST_CHECK;

/* In the SMs themselves: sm__, smsp__ and l1tex__ metrics are made of such counters. */
bool kprof_place_is_in_sm(uint32_t place);
/* In the first domain of the SMs, alone or with another. */
bool kprof_place_is_in_sm_a(uint32_t place);
/* In the second or third domain of the SMs, alone or with another. CUPTI makes two control calls of the driver for each
 * launch of a pass that has such counters; NVPW prefers these domains. */
bool kprof_place_is_slow(uint32_t place);
/* In the first domain of the SMs, alone or with another, where the pass has such counters already: one more counter
 * there costs nothing. */
bool kprof_place_is_free(uint32_t place, const kprof_pass_traits *pass);
bool kprof_place_is_in_l2(uint32_t place);
/* Counted by code that is patched into the kernels. */
bool kprof_place_is_patch(uint32_t place);

/* The raw counters that one pass of a config image has, appended to `out`. */
kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out) KPROF_MUST_CHECK;
/* The passes in which an image has a raw counter: [image->pass_count], *count of them; none where it has it in none. */
bool kprof_image_passes(const kprof_config_image *image, const char *counter, size_t *passes, size_t *count);

#endif
