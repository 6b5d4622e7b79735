/* NVPW's scheduler of raw counters, on which CUPTI's config images are made too: the same counters give the same bytes.
 * Counters are asked about and added while a pass group is open. */
#ifndef KPROF_PLANNER_RAW_CONFIG_H
#define KPROF_PLANNER_RAW_CONFIG_H

#include "planner/host_private.h"
#include "planner/placement.h"

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
/* What a pass is by its counters. */
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

#endif
