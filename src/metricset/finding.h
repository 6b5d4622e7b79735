/* A finding as data: when a kernel has a problem, the values that show it, what to do about it, and what that may be
 * worth. metricsets/findings/<id>.json; docs/metricsets.md has the format. A finding reads only what a launch has. */
#pragma once

#include "metricset/expr.h"
#include "metricset/json.h"

typedef enum kprof_confidence { KPROF_CONFIDENCE_LOW, KPROF_CONFIDENCE_MEDIUM, KPROF_CONFIDENCE_HIGH } kprof_confidence;

/* A finding may tell a line of the verdict on a launch. */
typedef enum kprof_verdict_line {
    KPROF_VERDICT_NONE,
    KPROF_VERDICT_LIMIT,     /* what limits the kernel, and how far it is from there */
    KPROF_VERDICT_STALL,     /* what its warps wait for */
    KPROF_VERDICT_OCCUPANCY, /* what limits its occupancy */
    KPROF_VERDICT_LINES
} kprof_verdict_line;

/* A number that the report computes of others, for findings alone. */
typedef struct kprof_made_number {
    const char *name, *unit, *description;
} kprof_made_number;

/* Those of the samples over time of a launch. */
typedef enum kprof_timeline_number {
    KPROF_TIMELINE_RAMP_UP,
    KPROF_TIMELINE_TAIL,
    KPROF_TIMELINE_TAIL_LOST,
    KPROF_TIMELINE_DRAM_MOST,
    KPROF_TIMELINE_DRAM_MEAN,
    KPROF_TIMELINE_PHASES,
    KPROF_TIMELINE_PHASE_END, /* of the first phase; the same of the others follow */
    KPROF_TIMELINE_PHASE_UNIT,
    KPROF_TIMELINE_PHASE_PCT,
    KPROF_TIMELINE_NUMBERS = KPROF_TIMELINE_PHASE_END + 3 * (KPROF_TIMELINE_PHASE_PCT - KPROF_TIMELINE_PHASE_END + 1)
} kprof_timeline_number;
extern const kprof_made_number kprof_timeline_numbers[KPROF_TIMELINE_NUMBERS];

/* One of samples over time or of instructions; NULL: none has the name. */
const kprof_made_number *kprof_made_number_find(const char *name);

/* A number that decides, with a name for expressions. */
typedef struct kprof_finding_threshold {
    const char *name, *unit, *source; /* the unit is "" for a plain number, the source NULL for none */
    double value;
} kprof_finding_threshold;

/* How a value is chosen of several options: the largest or smallest value, or the first whose condition holds. */
typedef enum kprof_pick { KPROF_PICK_NONE, KPROF_PICK_LARGEST, KPROF_PICK_SMALLEST, KPROF_PICK_FIRST } kprof_pick;

typedef struct kprof_finding_option {
    char *name, *text; /* texts with placeholders; NULL: no text */
    char *place;       /* the metric of instructions that tells where, for kprof_finding_places; NULL: none */
    kprof_expr *value; /* NULL, of KPROF_PICK_FIRST only: its place, from 1 */
    kprof_expr *when;  /* NULL: always */
} kprof_finding_option;

typedef struct kprof_finding_value {
    const char *name, *label, *unit; /* no label: it is of use to expressions only; the unit is "" for a plain number */
    kprof_pick pick;
    kprof_expr *expression;        /* of KPROF_PICK_NONE */
    kprof_finding_option *options; /* [option_count] of the others */
    size_t option_count;
} kprof_finding_value;

/* Expressions are bound to an array of values: the thresholds, then the finding's own values, then its operands. Texts
 * have placeholders: {value} for a number with its unit, {value.name} and {value.text} of the chosen option. */
enum { KPROF_MOST_PLACE_METRICS = 8 };

/* The worst places of a finding in the code: the lines with the largest shares of some metrics of instructions. */
typedef struct kprof_finding_places {
    char **metrics; /* names of metricset/instruction.h, which are added up; NULL-terminated. NULL: see `of` */
    size_t of;      /* index of the value whose chosen option has the metric; SIZE_MAX: none. Neither: no places */
    size_t beside;  /* of another such value, whose metric is added; SIZE_MAX: none */
    int most;       /* lines that are shown at most */
} kprof_finding_places;

typedef struct kprof_finding {
    char *id, *name, *help;
    char **sections; /* it stands in the first of these that a launch has */
    int order;
    bool optional;       /* some chips lack metrics that it needs */
    bool is_symptom;     /* a symptom of what other findings name: comparisons count a third of its gain */
    kprof_expr *symptom; /* whether it is, where that depends on its values; NULL: it does not */
    char **unless;       /* ids of findings: if a kernel has one of them, kprof does not report this one. NULL: none */
    char **ncu;          /* ids of ncu's rules that look for the same, the closest first. NULL: none */
    kprof_confidence confidence;
    kprof_finding_threshold *thresholds;
    size_t threshold_count;
    kprof_finding_value *values; /* each may use those before it */
    size_t value_count;
    kprof_strlist operands; /* metrics, each once; of the pool */
    kprof_expr *when;
    char *message, *advice; /* advice: NULL for none */
    kprof_expr *gain;       /* per cent of the kernel's time that could go at most; NULL: not estimated */
    kprof_expr *gain_bound; /* per cent that the gain cannot exceed, whatever `gain` is; NULL: 100 */
    bool gain_is_local;     /* a share of the time of the finding's subject, not of the kernel */
    kprof_expr *severity;   /* ranks the finding where `gain` is missing, in the same per cent; NULL: nothing does */
    char *gain_formula;     /* the same in words; NULL with `gain` */
    char *gain_source;      /* the source of that claim; NULL: none */
    char *next;             /* id of the section to look at, or {value.name} for that of an option; NULL: none */
    kprof_verdict_line verdict;
    char *verdict_name; /* in a word or two; both NULL with KPROF_VERDICT_NONE */
    char *verdict_text;
    size_t verdict_value; /* of `values`: the number that goes with it; SIZE_MAX: none */
    kprof_expr *near;     /* of KPROF_VERDICT_LIMIT: the kernel is near its limit; NULL: never */
    char *near_text;      /* the verdict's words about gains then; NULL with `near` */
    kprof_finding_places places;
} kprof_finding;

/* Findings of a catalog, in display order. */
typedef struct kprof_finding_list {
    const kprof_finding **items; /* [count]; the array is owned, the findings are borrowed */
    size_t count;
} kprof_finding_list;

/* Read the JSON of a finding; BAD_METRICSET names the place. */
kprof_status kprof_finding_read(const kprof_json_place *place, const cJSON *value, kprof_finding *out) KPROF_MUST_CHECK;

/* Is it the finding's id, or that of one of ncu's rules which look for the same? */
bool kprof_finding_has_id(const kprof_finding *finding, const char *id);
/* Return the closest of ncu's rules, or else the finding's own id. */
const char *kprof_finding_ncu_rule(const kprof_finding *finding);

/* A placeholder in a text, or the text before it. */
typedef enum kprof_text_part_kind {
    KPROF_PART_END,
    KPROF_PART_TEXT,
    KPROF_PART_NUMBER, /* of `local` */
    KPROF_PART_NAME,   /* of the option that `local` is */
    KPROF_PART_OPTION_TEXT,
    KPROF_PART_UNKNOWN, /* a placeholder that names nothing */
} kprof_text_part_kind;
typedef struct kprof_text_part {
    kprof_text_part_kind kind;
    const char *text; /* [length] of the text as it is written */
    size_t length;
    size_t local; /* a threshold, or threshold_count + a value */
} kprof_text_part;
/* The part that *text begins with; moves *text behind it. */
kprof_text_part kprof_finding_text_part(const kprof_finding *finding, const char **text);
