/* Declares the host object, what CUPTI and NVPW know about metrics and raw counters, and its scheduler. CUPTI makes its
 * config images with that scheduler too. */
#pragma once

#include "host/answers.h"
#include "host/host.h"

struct kprof_cupti_api; /* load.h */
struct kprof_nvperf_api;

struct kprof_host {
    char *chip, *label;
    kprof_availability availability; /* image NULL: the chip in general */
    kprof_answers *answers;
    bool keeps_answers;                /* on disk, for other runs */
    bool samples;                      /* the object is for samples over time, not for ranges */
    const struct kprof_cupti_api *api; /* with the object */
    void *object; /* CUPTI's, made on first use: for questions and evaluation; metrics are only added to objects of
                   * their own */
    const struct kprof_nvperf_api *nvpw;
    void *evaluator, *scratch; /* NVPW's metrics evaluator, made on first use, and its memory */
};

/* Load libcupti and open CUPTI's object, on the first call. UNSUPPORTED when that fails. */
kprof_status kprof_ask_open(kprof_host *host) KPROF_MUST_CHECK;
void kprof_ask_close(kprof_host *host);
/* Questions to the libraries; each appends its answer to `out`. */
typedef kprof_status kprof_ask(kprof_host *host, const char *name, kprof_strlist *out);
kprof_ask kprof_ask_chips;        /* of no host and no name */
kprof_ask kprof_ask_base_metrics; /* the name is the number of a type */
kprof_ask kprof_ask_submetrics;
kprof_ask kprof_ask_breakdown; /* a name once for each time that it is in there */
kprof_ask kprof_ask_info;      /* type, as a number, description, hardware unit and unit */
kprof_ask kprof_ask_known;     /* the name; nothing, where the chip has no metric of that name */
kprof_ask kprof_ask_sampled;   /* the name; nothing, where no single pass samples it over time */
/* Does CUPTI take these names together? *certain is cleared when it had no memory to tell. */
bool kprof_ask_takes(kprof_host *host, const char **names, size_t count, bool *certain);
/* Make CUPTI's own config image for all names together. Caller frees *out. */
kprof_status kprof_host_draft_image(kprof_host *host, const kprof_strlist *names,
                                    kprof_config_image *out) KPROF_MUST_CHECK;
/* Append the raw counters that one pass of a config image has. */
kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out) KPROF_MUST_CHECK;
/* Append the raw counters that a full name is computed from, as NVPW names them, to `required`; and to `optional`
 * (NULL: not asked for) those that change the value when they are there. */
kprof_status kprof_host_raw_counters(kprof_host *host, const char *name, kprof_strlist *required,
                                     kprof_strlist *optional) KPROF_MUST_CHECK;

/* One counter in one domain, or group of domains that work together (0: NVPW chooses). */
typedef struct kprof_placed_counter {
    const char *name;
    uint32_t domain;
} kprof_placed_counter;

/* NVPW's scheduler, for the chip and availability of a host. */
typedef struct kprof_raw_config kprof_raw_config;
kprof_status kprof_raw_config_open(kprof_host *host, kprof_raw_config **out) KPROF_MUST_CHECK;
void kprof_raw_config_close(kprof_raw_config *config);
/* Close the open pass group, if any, and open one with these counters. NVPW packs the counters of a group together. */
kprof_status kprof_raw_config_begin(kprof_raw_config *config, const kprof_placed_counter *counters,
                                    size_t count) KPROF_MUST_CHECK;
/* In an open, empty group; *out: one pass takes all of the counters. */
kprof_status kprof_raw_config_takes(const kprof_raw_config *config, const kprof_placed_counter *counters, size_t count,
                                    bool *out) KPROF_MUST_CHECK;
/* The config image of all groups so far, which CUPTI takes; caller frees *out. */
kprof_status kprof_raw_config_image(const kprof_host *host, kprof_raw_config *config,
                                    kprof_config_image *out) KPROF_MUST_CHECK;

/* In an open group: where a counter can be read; domains, and groups of domains. */
#define KPROF_COUNTER_PLACES_MAX 8 /* more than kprof tries for one counter */
typedef struct kprof_counter_places {
    uint32_t items[KPROF_COUNTER_PLACES_MAX];
    size_t count;
} kprof_counter_places;
kprof_status kprof_raw_config_places(const kprof_raw_config *config, const char *counter,
                                     kprof_counter_places *out) KPROF_MUST_CHECK;

/* Properties of a place, as bits. CUPTI makes two control calls of the driver for each launch of a pass that has
 * counters of the second or third domain of the SMs; NVPW prefers these domains. */
enum {
    KPROF_IN_SM = 1,   /* in the SMs themselves: sm__, smsp__ and l1tex__ metrics are made of such counters */
    KPROF_IN_SM_A = 2, /* in the first domain of the SMs, alone or with another */
    KPROF_IS_SLOW = 4, /* in the second or third one, likewise: each launch takes 0.2 ms more for it */
    KPROF_IN_L2 = 8,
    KPROF_IS_PATCH = 16,  /* counted by code that is patched into the kernels */
    KPROF_IN_TPC_TOO = 32 /* in the SMs and in their TPC at once */
};
unsigned kprof_place_traits(uint32_t place);
typedef struct kprof_traits {
    unsigned possible; /* of some of the places where something may be */
    unsigned certain;  /* of all of them; of a pass: of all places of one of its counters */
} kprof_traits;
