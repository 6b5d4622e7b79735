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

/* *out: the counter is in the SMs themselves (sm__, smsp__ and l1tex__ metrics are made of such). */
kprof_status kprof_raw_config_is_sm_side(const kprof_raw_config *config, const char *counter,
                                         bool *out) KPROF_MUST_CHECK;

#endif
