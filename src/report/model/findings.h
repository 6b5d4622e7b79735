/* Findings and the verdict: evaluates the definitions of metricset/finding.h for the values of a launch or a kernel.
 * Names are resolved once for a report. A report does not store findings, since they follow from its values. */
#pragma once

#include "report/model/model.h"

typedef enum kprof_found_state {
    KPROF_FOUND_UNKNOWN, /* not evaluated: a value that it needs is missing */
    KPROF_FOUND_NOTHING, /* evaluated: the condition does not hold */
    KPROF_FOUND,
} kprof_found_state;

/* One finding, evaluated. */
typedef struct kprof_found {
    const kprof_finding *finding;
    kprof_found_state state;
    const double *values;  /* thresholds, values, operands, as its expressions have them; NaN: missing */
    const size_t *options; /* [value_count] the chosen option; SIZE_MAX: none */
    double gain_pct;       /* 0 to 100; NaN: not found, or not estimated */
    double unbounded_pct;  /* the gain without its bound: more than `gain_pct` where the bound decides */
    double severity_pct;   /* 0 to 100, where it is found and `gain_pct` is not known; NaN: not known either */
    bool is_symptom;       /* of what other findings name */
    const struct kprof_found_place *places; /* [place_count], the worst first (report/model/places.h) */
    size_t place_count;
    double
        impossible_pct; /* why it is not evaluated: a share that its text would tell, and no launch has; 0: another */
} kprof_found;

/* The verdict: what matters most, in five lines. Borrowed from the evaluated findings; NULL: not known. */
typedef struct kprof_verdict {
    const kprof_found *lines[KPROF_VERDICT_LINES];   /* evaluated, found or not */
    const kprof_found *unknown[KPROF_VERDICT_LINES]; /* the finding that would fill the line, but lacks metrics */
    const kprof_found *best; /* the finding that is worth most, as kprof_found_is_worth_more says */
    const kprof_found *near; /* says that the kernel is near its limit, and no finding is worth more; NULL: it is not */
    bool near_is_unsure;     /* a finding that could be worth more was not evaluated because metrics are missing */
    const char *next;        /* id of the section to look at: that of the best, or where the limit leads */
} kprof_verdict;

/* "yes": the kernel is near its limit, and no finding is worth more than what is left; "as measured": but what was not
 * measured may be; "no". */
const char *kprof_verdict_little_to_gain(const kprof_verdict *verdict);

typedef struct kprof_findings {
    const kprof_found *items; /* [count], all, in display order */
    size_t count;
    kprof_verdict verdict;
} kprof_findings;

/* Definitions bound to the metrics of a report, in memory of the model. The list is borrowed. */
typedef struct kprof_rules kprof_rules;
kprof_rules *kprof_rules_new(const kprof_finding_list *findings, const kprof_model *model);
/* Evaluate for values[metric_count of the model]: those of a launch, or averages over launches of a kernel. `counters`:
 * sums over its instructions, [KPROF_COUNTER_COUNT], NaN where there is none; NULL: there are none at all. The result
 * is valid until the next call. */
const kprof_findings *kprof_rules_apply(kprof_rules *rules, const double *values, const double *counters);

/* The result of the last evaluation. */
const kprof_findings *kprof_rules_findings(const kprof_rules *rules);
/* Give a finding its places until the next evaluation. They are borrowed. */
void kprof_rules_place(kprof_rules *rules, size_t index, const struct kprof_found_place *places, size_t count);

/* Append a text of the finding (message, advice, ...) with its values placed in, scaled unless `base_units`. Appends
 * nothing for NULL. */
void kprof_found_text(const kprof_found *found, const char *text, bool base_units, kprof_strbuf *out);
/* Append where in the code it is worst, as a sentence; nothing where that is not known. */
void kprof_found_where(const kprof_found *found, kprof_strbuf *out);
/* Append its message and its advice, and where it is worst. */
void kprof_found_say(const kprof_found *found, bool base_units, kprof_strbuf *out);
/* Append what it is worth and how sure it is, to its name: ": up to 12.50 % of the time, high confidence". */
void kprof_found_describe(const kprof_found *found, kprof_strbuf *out);
/* Append the name of the option that value `index` is; nothing when it is of none. */
void kprof_found_option(const kprof_found *found, size_t index, bool base_units, kprof_strbuf *out);
/* Is this finding worth more than another one? A finding is worth its gain, or its severity where the gain is not
 * known; a symptom counts a third. docs/metricsets.md tells the order. If the same bound decides both gains, the
 * finding with the larger unbounded gain wins. */
bool kprof_found_is_worth_more(const kprof_found *found, const kprof_found *other);
/* The id of the section to look at next; NULL: none, also of NULL. */
const char *kprof_found_next(const kprof_found *found);
/* Append the missing operands, each once. Appends none when all values are there but give no result, such as hits when
 * there were no accesses. */
void kprof_found_missing(const kprof_found *found, kprof_strlist *out);
/* Append why it is not evaluated where no metric is missing: "a share of 587,498 % is impossible"; nothing where there
 * is no more to tell. */
void kprof_found_why_not(const kprof_found *found, kprof_strbuf *out);
/* "low", "medium" or "high". */
const char *kprof_confidence_name(kprof_confidence confidence);

/* The verdict as rows for people: a label and a text. If the line is not known, the text names the section to collect.
 */
typedef enum kprof_verdict_row {
    KPROF_ROW_LIMIT,
    KPROF_ROW_STALL,
    KPROF_ROW_OCCUPANCY,
    KPROF_ROW_BEST,
    KPROF_ROW_NEXT,
    KPROF_VERDICT_ROWS
} kprof_verdict_row;
typedef struct kprof_verdict_text {
    const char *key, *label; /* "limit", "Limited by" */
    double value;            /* the number that goes with it, in per cent; NaN: none */
    bool is_known;
    kprof_strbuf name; /* in a word or two, for tables: "latency"; of BEST and NEXT an id; empty: not known */
    kprof_strbuf text; /* empty: there is no such row */
} kprof_verdict_text;
/* Make a row; the caller frees it with kprof_verdict_text_free. Out of memory where one of its texts has failed. */
kprof_verdict_text kprof_verdict_describe(const kprof_findings *findings, kprof_verdict_row row, bool base_units);
void kprof_verdict_text_free(kprof_verdict_text *row);
/* The text of a known row; NULL otherwise, so that programs get no value. Borrowed. */
const char *kprof_verdict_known_text(const kprof_verdict_text *row);
