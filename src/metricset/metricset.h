/* Sets, sections, findings, aliases and words as data: reads metricsets/sets/<id>.json and the like, and resolves a
 * selection for one chip into the names to collect. docs/metricsets.md has the file format. */
#pragma once

#include "core/strbuf.h"
#include "metricset/finding.h"
#include "metricset/instruction.h"
#include "metricset/section.h"
#include "planner/planner.h"
#include "planner/timeline.h"

typedef struct kprof_catalog kprof_catalog;

/* Load all sets, sections and findings of the folders, later ones over earlier ones. BAD_METRICSET names the place. */
kprof_status kprof_catalog_load(const kprof_strlist *folders, kprof_catalog **out) KPROF_MUST_CHECK;
void kprof_catalog_free(kprof_catalog *catalog);

/* Read back what kprof_section_to_json wrote. BAD_METRICSET on anything else. */
kprof_status kprof_section_from_json(const kprof_json_place *file, const char *json,
                                     kprof_section *out) KPROF_MUST_CHECK;

typedef struct kprof_catalog_entry {
    const char *id, *name, *help;   /* borrowed from the catalog */
    const char *const *aliases;     /* NULL-terminated: "basic" of "default" */
    const char *const *section_ids; /* of a set, NULL-terminated; NULL for a section */
} kprof_catalog_entry;
size_t kprof_catalog_set_count(const kprof_catalog *catalog);
size_t kprof_catalog_section_count(const kprof_catalog *catalog); /* in display order */
kprof_catalog_entry kprof_catalog_set(const kprof_catalog *catalog, size_t index);
kprof_catalog_entry kprof_catalog_section(const kprof_catalog *catalog, size_t index);

/* The findings of these ids, or all when there are none, in display order. UNKNOWN_NAME with the nearest id. The caller
 * frees items; the findings are the catalog's. */
kprof_status kprof_catalog_findings(const kprof_catalog *catalog, const kprof_strlist *ids,
                                    kprof_finding_list *out) KPROF_MUST_CHECK;

/* A section's help for a value. Values below the heading come first; values without a help are left out. */
typedef struct kprof_value_help {
    const char *label, *metric, *help; /* borrowed from the catalog; `metric` is the first choice */
} kprof_value_help;
typedef void kprof_value_help_visit(void *user, const kprof_value_help *value);
void kprof_catalog_section_helps(const kprof_catalog *catalog, size_t index, kprof_value_help_visit *visit, void *user);

/* A name that people know for what chips call otherwise: "dram.bandwidth", or nvprof's "gld_efficiency". */
typedef struct kprof_alias kprof_alias;
size_t kprof_catalog_alias_count(const kprof_catalog *catalog);
const kprof_alias *kprof_catalog_alias(const kprof_catalog *catalog, size_t index); /* in the order of the files */
const kprof_alias *kprof_catalog_find_alias(const kprof_catalog *catalog, const char *name); /* NULL: there is none */
/* Return the metric that somebody who wrote `word` probably meant, or NULL: the one that has most of its words, in any
 * order, under the same unit, which is what stands before "__", or under a related one. */
const char *kprof_nearest_metric(const char *word, const char *const *names, size_t count);
/* The id of a set, or of a section; NULL where there is none of that id or alias. */
const char *kprof_catalog_set_id(const kprof_catalog *catalog, const char *id_or_alias);
const char *kprof_catalog_section_id(const kprof_catalog *catalog, const char *id_or_alias);
/* Ids of sections that show together what this one does, NULL-terminated; NULL: there are none. */
char *const *kprof_catalog_held_by(const kprof_catalog *catalog, const char *section_id);
/* Why kprof does not collect what `word` names, in any spelling ("Nvlink_Tables", "NVLink"); NULL: not known. */
const char *kprof_catalog_why_not(const kprof_catalog *catalog, const char *word);

typedef struct kprof_alias_entry {
    const char *name, *origin, *help; /* borrowed from the catalog; `origin` is whose name it is, such as "nvprof" */
    const char *stands_for;           /* the first choice, a metric or an expression; NULL: nothing counts the same */
    bool is_formula;                  /* what stands for it is computed from several metrics, or in another unit */
    const char *const *closest;       /* NULL-terminated: metrics that come near to it, where nothing stands for it */
} kprof_alias_entry;
kprof_alias_entry kprof_alias_describe(const kprof_alias *alias);
/* Ask about all that aliases may stand for at once, so that kprof_alias_on finds the answers remembered. */
kprof_status kprof_catalog_check_aliases(const kprof_catalog *catalog, kprof_host *host) KPROF_MUST_CHECK;
/* The metric or expression that stands for an alias on the chip of a host, or NULL. */
const char *kprof_alias_on(const kprof_alias *alias, kprof_host *host);

/* The names that somebody can have values of. */
typedef struct kprof_name_supply {
    bool (*has)(void *user, const char *name);
    void *user;
} kprof_name_supply;
/* Append the names that stand for an alias among those of the supply: of its first choice that is there whole. */
void kprof_alias_choose(const kprof_alias *alias, const kprof_name_supply *supply, kprof_strlist *out);
/* The alias that somebody who wrote `word` probably meant, or NULL: a near spelling, or one that has it as a
 * part, as "occupancy.achieved" has "occupancy", and stands for something in the supply; NULL: any does. Metrics have
 * "__", and aliases have not. */
const char *kprof_nearest_alias(const kprof_catalog *catalog, const char *word, const kprof_name_supply *supply);

/* The user's choice. If all lists are empty, it is the default set. */
typedef struct kprof_selection {
    kprof_strlist sets;      /* ids or aliases */
    kprof_strlist sections;  /* ids or "regex:..." */
    kprof_strlist excluded;  /* likewise: sections that are not taken, whatever asks for them */
    kprof_strlist metrics;   /* full names, base names (expand to first-level submetrics as ncu does), "regex:...",
                                "breakdown:<throughput>", "group:<section id>"; launch__* names and aliases too, and
                                those of instructions (metricset/instruction.h) */
    kprof_limits limits;     /* where they are too tight, the least useful names are left out */
    uint32_t most_timelines; /* passes of samples over time; 0: as many as it takes */
    bool is_traced;          /* kernels are recorded, too: CUPTI records none while instructions may be sampled */
} kprof_selection;

/* Copy the selection, but for the words that name what kprof is known to lack, such as sections of sampled source
 * lines: a warning tells of each. Where nothing would be left, all stays, so that the checks below refuse it. */
void kprof_selection_trim(const kprof_catalog *catalog, const kprof_selection *from, kprof_selection *out);
/* How many sets, sections and metrics does it name? 0 stands for the default set. */
size_t kprof_selection_count(const kprof_selection *selection);
void kprof_selection_free(kprof_selection *selection); /* members */
/* The pattern of a word of --section: regex:PATTERN, or, as in ncu, what is no name as it has one of a pattern's
 * characters. NULL: it is a name. */
const char *kprof_section_pattern(const char *word);

/* Check set and section names against the catalog, before any chip is known: UNKNOWN_NAME with the nearest name. */
kprof_status kprof_selection_check(const kprof_catalog *catalog, const kprof_selection *selection) KPROF_MUST_CHECK;

/* UNKNOWN_NAME, with the nearest name, for a word of a selection's metrics that stands for nothing on the chip; USAGE
 * for a pattern that is not valid, or a word that stands for too many metrics. */
kprof_status kprof_metrics_check(const kprof_catalog *catalog, kprof_host *host, const char *word) KPROF_MUST_CHECK;

/* A selection resolved for one chip. Sections and computed values borrow their texts from the catalog. */
typedef struct kprof_plan {
    kprof_pool pool;
    char *chip;
    kprof_strlist collect;  /* hardware metrics, as they are to be collected and stored */
    kprof_strlist shown;    /* names that --metrics asked for, expanded; a subset of `collect` and launch__* names */
    kprof_strlist left_out; /* hardware metrics that were asked for but exceed the limits, the most useful first */
    kprof_item *computed;   /* [computed_count]: values of --metrics that are expressions over what is collected */
    size_t computed_count;
    kprof_instruction_wish instructions; /* that each launch is repeated for, beside the passes of the schedule */
    kprof_timeline_plan timeline;        /* what each launch is repeated for further, and is sampled over time */
    kprof_strlist notes;                 /* for people: what stands for names of other tools in --metrics */
    kprof_section *sections;             /* [section_count], display order */
    size_t section_count;
    size_t pass_count;
    kprof_image_variants variants; /* schedule `collect`; making them again costs up to some seconds */
    kprof_schedule schedule;       /* of what is collected, and then of the witnesses */
    kprof_cost cost;
} kprof_plan;

/* UNKNOWN_NAME names each unknown metric with the nearest that exists; USAGE when nothing fits into the limits. The
 * plan is freed with kprof_plan_free. */
kprof_status kprof_plan_make(const kprof_catalog *catalog, const kprof_selection *selection, kprof_host *host,
                             kprof_plan *out) KPROF_MUST_CHECK;
/* A section that is sampled over the time of a program, on GPUs that are linked with others by NVLink, or are not. */
typedef struct kprof_sampled_section {
    const char *id;
    bool is_linked;
} kprof_sampled_section;
/* Plan one pass of samples of the section's metrics, and nothing else: plan->notes tells what the chip lacks, and what
 * the pass has no space for. If it has metrics of links, a second pass is without them, for GPUs on which CUPTI
 * completes no sample with them. UNSUPPORTED when the chip has none of the metrics. */
kprof_status kprof_plan_make_sampled(const kprof_catalog *catalog, const kprof_sampled_section *section,
                                     kprof_host *host, kprof_plan *out) KPROF_MUST_CHECK;
void kprof_plan_free(kprof_plan *plan); /* members, not the struct */
/* The passes of the schedule, those of instructions and those of samples over time. */
size_t kprof_plan_pass_count(const kprof_plan *plan);
/* The workload with the passes of instructions that the plan has. */
kprof_workload kprof_plan_workload(const kprof_plan *plan, const kprof_workload *workload);
/* The cost of the plan without its passes of instructions. */
kprof_cost kprof_plan_cost_without_instructions(const kprof_plan *plan, const kprof_workload *workload);
/* Add the metrics of a section that describe the launch itself and are not collected. */
void kprof_section_launch_metrics(const kprof_section *section, kprof_strlist *out);

/* The size of a set on the host's chip, as `kprof list sets` shows it. */
typedef struct kprof_set_cost {
    size_t metric_count, pass_count;
    double instruction_pct; /* of the time of a launch, about: what is measured of its instructions */
} kprof_set_cost;
kprof_status kprof_set_cost_on(const kprof_catalog *catalog, const char *set, kprof_host *host,
                               kprof_set_cost *out) KPROF_MUST_CHECK;

/* The unit of a metric where CUPTI's is not what the metric counts, else `unit`. CUPTI and ncu count warps
 * that wait in a cycle with an issue in "inst". By Little's law they are the cycles that a warp waits between two
 * instructions, and add up to smsp__average_warp_latency_per_inst_issued.ratio, which CUPTI counts in "cycle". Requests
 * to the cache of instructions are cycles for CUPTI, as it takes one in a cycle. */
const char *kprof_metric_unit(const char *name, const char *unit);

/* `kprof list metrics`: BASE gives the base names of the chip, ALL every full name, SUFFIX the full names of the bases
 * in `names`; in the other modes `names` narrows the answer (empty: all). Names are spelled as in a selection's
 * metrics; "group:" and "breakdown:" mean the bases of what they stand for, and a "regex:" that matches no base the
 * full names that it matches: UNKNOWN_NAME when there are none. launch__* names come with BASE and ALL. `visit` gets
 * each row in alphabetical order; its texts are valid during the call, and a status other than OK ends the query. */
typedef enum kprof_query_mode { KPROF_QUERY_BASE, KPROF_QUERY_SUFFIX, KPROF_QUERY_ALL } kprof_query_mode;
typedef struct kprof_query_row {
    const char *name, *unit, *description;
    const char *kind; /* "counter", "ratio", "throughput" or "launch" */
} kprof_query_row;
typedef kprof_status kprof_query_visit(void *user, const kprof_query_row *row);
typedef struct kprof_query {
    const kprof_catalog *catalog; /* for "group:" and aliases */
    kprof_query_mode mode;
    const kprof_strlist *names;
    kprof_query_visit *visit;
    void *user;
} kprof_query;
kprof_status kprof_query_metrics(kprof_host *host, const kprof_query *query) KPROF_MUST_CHECK;
/* The full names that a plan collects or shows, likewise; of the query `visit` and `user` count. */
kprof_status kprof_query_collected(kprof_host *host, const kprof_plan *plan, const kprof_query *query) KPROF_MUST_CHECK;

/* Names known from the launch itself, not collected: launch__*, device__attribute_*. Rows of core/fields.h by name,
 * ended by one without a name; the report computes their values. */
typedef struct kprof_launch_metric {
    const char *name, *unit, *description;
    bool on_request; /* a report has it where --metrics or a section names it */
} kprof_launch_metric;
extern const kprof_launch_metric *const kprof_launch_metrics;
/* The row of a name, or NULL when the launch does not tell it. */
const kprof_launch_metric *kprof_launch_metric_find(const char *name);
