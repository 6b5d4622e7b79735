/* NVPW's scheduler of raw counters, on which CUPTI's config images are made too: the same counters give the same bytes.
 * Counters are asked about and added while a pass group is open. */
#ifndef KPROF_CUPTI_RAW_CONFIG_H
#define KPROF_CUPTI_RAW_CONFIG_H

#include "cupti/host_private.h"

typedef struct kprof_raw_config kprof_raw_config;

/* For the chip and availability of `host`. */
kprof_status kprof_raw_config_open(const kprof_host *host, kprof_raw_config **out) KPROF_MUST_CHECK;
void kprof_raw_config_close(kprof_raw_config *config);

/* Open and close a pass group: what is added in between is packed together, and apart from other groups. */
kprof_status kprof_raw_config_begin(kprof_raw_config *config) KPROF_MUST_CHECK;
kprof_status kprof_raw_config_end(kprof_raw_config *config) KPROF_MUST_CHECK;

/* In an open group: add counters; *out: all of them go into the passes that the group has without one more. */
kprof_status kprof_raw_config_add(kprof_raw_config *config, const kprof_strlist *counters) KPROF_MUST_CHECK;
kprof_status kprof_raw_config_fits(const kprof_raw_config *config, const kprof_strlist *counters,
                                   bool *out) KPROF_MUST_CHECK;
/* The config image of all groups so far, which CUPTI takes; caller frees *out. */
kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config,
                                    kprof_config_image *out) KPROF_MUST_CHECK;

/* *out: the counter is in the SMs themselves (sm__, smsp__ and l1tex__ metrics are made of such). */
kprof_status kprof_raw_config_is_sm_side(const kprof_raw_config *config, const char *counter,
                                         bool *out) KPROF_MUST_CHECK;

/* The raw counters that one pass of a config image has, appended to `out`. */
kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out) KPROF_MUST_CHECK;

#endif
