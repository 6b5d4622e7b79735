/* Declares what the files of this folder share: the host object, what NVPW knows about metrics and raw counters, and
 * its scheduler. CUPTI makes its config images with that scheduler too, so the same counters give the same bytes. */
#ifndef KPROF_PLANNER_NVPW_H
#define KPROF_PLANNER_NVPW_H

#include "planner/host.h"

#include <stdbool.h>

struct kprof_cupti_api; /* load.h */
struct kprof_nvperf_api;

struct kprof_host {
    const struct kprof_cupti_api *api;
    void *object; /* CUPTI's: for questions and evaluation; metrics are only added to objects of their own */
    char *chip;
    kprof_availability availability; /* image NULL: the chip in general */
    void *known_names;               /* names.c: which names can be collected, as far as asked */
    kprof_strlist draft_names; /* of the draft made last, for which CUPTI takes seconds where they are thousands */
    kprof_config_image draft;  /* data NULL: none */
    const struct kprof_nvperf_api *nvpw;
    void *evaluator, *scratch; /* NVPW's metrics evaluator, made on first use, and its memory */
};

/* Append what tells the libraries behind the Profiler Host API from any others: CUPTI's version, and path, size and
 * time of libcupti and libnvperf_host. False when they cannot be opened or looked at. */
bool kprof_cupti_identify(kprof_strbuf *out);

void kprof_known_names_free(void *known_names);

/* Does CUPTI take these names together? *certain is cleared when it had no memory to tell. */
bool kprof_host_takes(const kprof_host *host, const char **names, size_t count, bool *certain);
/* Fill in pass_count of an image as CUPTI tells it. */
kprof_status kprof_host_count_passes(const kprof_host *host, kprof_config_image *image) KPROF_MUST_CHECK;
/* Append the raw counters that a full name is computed from, as NVPW names them, to `required`; and to `optional`
 * (NULL: not asked for) those that change the value when they are there. */
kprof_status kprof_host_raw_counters(kprof_host *host, const char *name, kprof_strlist *required,
                                     kprof_strlist *optional) KPROF_MUST_CHECK;
/* The raw counters that one pass of a config image has, appended to `out`. */
kprof_status kprof_image_counters(const kprof_config_image *image, size_t pass, kprof_strlist *out) KPROF_MUST_CHECK;

/* Names and images that are kept on disk as one answer (host.h). */
typedef struct kprof_image_answer {
    kprof_strlist *names;       /* [2] */
    kprof_config_image *images; /* [image_count]; size 0: there is none */
    size_t image_count;
} kprof_image_answer;
/* Append the names and fill in the images; false, with nothing in them, when no answer is kept. */
bool kprof_host_recall_images(const kprof_host_question *question, const kprof_image_answer *out);
void kprof_host_keep_images(const kprof_host_question *question, const kprof_image_answer *answer);

/* One counter in one domain, or group of domains that work together (0: NVPW chooses). */
typedef struct kprof_placed_counter {
    const char *name;
    uint32_t domain;
} kprof_placed_counter;

/* Counters of one pass, in the order in which they were added. */
typedef struct kprof_placed_counters {
    kprof_placed_counter *items; /* [names.count], which borrow the names */
    kprof_strlist names;
} kprof_placed_counters;

/* Make items of the names, in the domains that NVPW chooses. */
kprof_status kprof_placed_counters_make(kprof_placed_counters *counters) KPROF_MUST_CHECK;
/* The counters of a pass of `image`: as they were placed, or of CUPTI's own schedule. Caller frees *out, on failure
 * too. */
kprof_status kprof_placed_counters_read(const kprof_config_image *image, size_t pass,
                                        kprof_placed_counters *out) KPROF_MUST_CHECK;
void kprof_placed_counters_free(kprof_placed_counters *counters); /* members */
/* Append a pass to a placement, in the text that images keep. */
void kprof_placement_put(kprof_strbuf *placement, const kprof_placed_counter *counters, size_t count);

/* NVPW's scheduler, for the chip and availability of a host. The failures of one that can be done without are told at
 * the debug level. */
typedef struct kprof_raw_config kprof_raw_config;
kprof_status kprof_raw_config_open(const kprof_host *host, bool is_quiet, kprof_raw_config **out) KPROF_MUST_CHECK;
void kprof_raw_config_close(kprof_raw_config *config);

/* Close the open pass group, if any, and open one with these counters: what is in a group is packed together, and apart
 * from other groups. */
kprof_status kprof_raw_config_begin(kprof_raw_config *config, const kprof_placed_counter *counters,
                                    size_t count) KPROF_MUST_CHECK;
/* In an open group: add counters; *out: all of them go into the passes that the group has, or into one when it is
 * empty. */
kprof_status kprof_raw_config_add(kprof_raw_config *config, const kprof_placed_counter *counters,
                                  size_t count) KPROF_MUST_CHECK;
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
    KPROF_IS_SLOW = 4, /* in the second or third one, likewise: each launch takes ten times as long for it */
    KPROF_IN_L2 = 8,
    KPROF_IS_PATCH = 16 /* counted by code that is patched into the kernels */
};
unsigned kprof_place_traits(uint32_t place);
/* The properties of counters, wherever NVPW may place them. */
typedef struct kprof_traits {
    unsigned possible; /* of some of the places */
    unsigned certain;  /* of all places of a counter */
} kprof_traits;
kprof_traits kprof_places_traits(const kprof_counter_places *places);
/* Add those of a counter, in an open group, to *traits. */
kprof_status kprof_raw_config_add_traits(const kprof_raw_config *config, const kprof_placed_counter *counter,
                                         kprof_traits *traits) KPROF_MUST_CHECK;
/* In the first domain of the SMs, where the pass has such counters already: one more counter there costs nothing. */
bool kprof_place_is_free(uint32_t place, const kprof_traits *pass);

#endif
