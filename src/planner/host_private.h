/* What the files behind host.h share: the host object, and NVPW's metrics evaluator, which knows units and breakdowns.
 */
#ifndef KPROF_PLANNER_HOST_PRIVATE_H
#define KPROF_PLANNER_HOST_PRIVATE_H

#include "planner/host.h"
#include "planner/load.h"

#include <stdbool.h>

typedef struct kprof_name_memo kprof_name_memo; /* check.c: which names can be collected, as far as asked */
typedef struct kprof_evaluator kprof_evaluator; /* evaluator.c */

struct kprof_host {
    const kprof_cupti_api *api;
    CUpti_Profiler_Host_Object
        *object; /* for questions and evaluation; metrics are only added to objects of their own */
    char *chip;
    kprof_availability availability; /* image NULL: the chip in general */
    kprof_name_memo *memo;
    kprof_evaluator *evaluator; /* made on first use */
};

/* A further host object of the same chip, to be closed with kprof_host_object_close. */
CUptiResult kprof_host_object_open(const kprof_host *host, CUpti_Profiler_Host_Object **out);
void kprof_host_object_close(const kprof_host *host, CUpti_Profiler_Host_Object *object);
CUptiResult kprof_host_object_add(const kprof_host *host, CUpti_Profiler_Host_Object *object, const char **names,
                                  size_t count);
/* Fill in pass_count of an image as CUPTI tells it. */
kprof_status kprof_host_count_passes(const kprof_host *host, kprof_config_image *image) KPROF_MUST_CHECK;
/* Log "<operation>: <CUPTI's text>" and return INTERNAL. */
kprof_status kprof_host_fail(const kprof_host *host, const char *operation, CUptiResult result);

void kprof_name_memo_free(kprof_name_memo *memo);

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

#endif
