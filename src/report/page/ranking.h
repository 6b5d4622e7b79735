/* Groups of launches with what the summary and brief pages tell of each, in the order in which they show them. */
#pragma once

#include "report/model/places.h"
#include "report/page/groups.h"

/* A group; what is not known is NaN. */
typedef struct kprof_ranked {
    const kprof_group *group;
    double time_ns, share_pct;      /* of all its launches; of the time of all groups */
    double gain_pct;                /* the most that its best finding saves, of the time of all groups */
    double compute_pct, memory_pct; /* throughput, of the peak */
    double occupancy_pct;           /* achieved */
    double minimum_ns, maximum_ns;  /* of one launch */
    double median_ns;               /* of all its launches, whatever their shapes */
    uint64_t counted;               /* launches of its kernel in the census; 0: there is none */
    kprof_repeats repeats;          /* of launches of one shape */
} kprof_ranked;

typedef struct kprof_ranking {
    kprof_groups groups;
    kprof_ranked *rows; /* [count], in order; those from `shown` on are cut off */
    size_t count, shown;
    double time_ns; /* of all groups with a known time, or of the census; NaN: there is none */
    kprof_rules *rules;
    kprof_place_finder *finder; /* of groups.code, so a ranking stays where it was made */
    double *durations;          /* of a group, for sorting */
    kprof_rolled_up rolled_up;  /* of the row that was evaluated last */
} kprof_ranking;

/* Collect and sort, in memory of the model. */
kprof_status kprof_ranking_make(const kprof_page_context *context, kprof_ranking *out) KPROF_MUST_CHECK;

/* Roll up the values of a row's group into ranking->rolled_up, and look for findings in these and in what was measured
 * of its instructions; NULL: the options name none, or no launch of the group was measured. Valid until the next call.
 */
const kprof_findings *kprof_ranking_evaluate(kprof_ranking *ranking, const kprof_group *group);

/* The numbers of a row as pages show them. */
#define KPROF_RANKED_NUMBERS 18
typedef struct kprof_ranked_numbers {
    kprof_emit_field fields[KPROF_RANKED_NUMBERS];
} kprof_ranked_numbers;
/* The verdict on a row: what limits it, its top stall and its occupancy, and the texts that these are made of. */
#define KPROF_RANKED_VERDICT 9
typedef struct kprof_ranked_verdict {
    kprof_verdict_text rows[KPROF_VERDICT_ROWS];
    kprof_emit_field fields[KPROF_RANKED_VERDICT];
} kprof_ranked_verdict;
/* `findings` NULL: none were looked for. */
void kprof_ranked_verdict_make(const kprof_findings *findings, bool base_units, kprof_ranked_verdict *out);
void kprof_ranked_verdict_free(kprof_ranked_verdict *verdict);
/* People see it as a line of the verdict, and `otherwise` where it is missing. */
kprof_emit_field kprof_verdict_field(kprof_emit_field field, const char *otherwise);
/* As kprof_verdict_little_to_gain; missing without findings. */
kprof_emit_field kprof_field_little_to_gain(const kprof_findings *findings);
kprof_ranked_numbers kprof_ranked_describe(const kprof_ranked *row);
