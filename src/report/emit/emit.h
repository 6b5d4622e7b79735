/* How pages print: they call an emitter with keys, labels, units and values, and one file per format decides how that
 * looks. A page never asks for the format, and an emitter never for the page. A new format is one row of KPROF_FORMATS
 * and one file, which has the operations that differ from the defaults below. */
#pragma once

#include "report/emit/columns.h"
#include "report/emit/output.h"
#include "report/model/code.h"
#include "report/model/findings.h"
#include "report/model/stacks.h"
#include "report/model/timeline.h"
#include "report/model/units.h"
#include "report/model/view.h"
#include "report/store/launch_metrics.h"

/* A field of a record. */
typedef enum kprof_field_type { KPROF_FIELD_TEXT, KPROF_FIELD_INTEGER, KPROF_FIELD_REAL } kprof_field_type;
typedef enum kprof_field_role {
    KPROF_ROLE_SHOWN,
    KPROF_ROLE_MACHINE, /* for programs; people see it elsewhere or not at all */
    KPROF_ROLE_HEADING, /* people see it once, above the rows that share it */
    KPROF_ROLE_NOTE,    /* people see it in a line of its own below its row, where that is how tables hold long texts */
    KPROF_ROLE_VERDICT, /* as NOTE, but text shows it only for the first rows, unless it is verbose */
    KPROF_ROLE_PEOPLE,  /* for people only, unless it is missing: programs have it in other fields */
} kprof_field_role;
typedef struct kprof_emit_field {
    const char *key, *label, *unit; /* unit "" for none */
    kprof_field_type type;
    kprof_field_role role;
    const char *text;        /* NULL: missing */
    const char *short_text;  /* what people see in lines of text instead, with shorter names; NULL: the same */
    const char *longer_text; /* beside a short one: what stands below the row with its verdict; NULL: nothing */
    int64_t integer;
    double real;         /* NaN: missing */
    const char *missing; /* what people see where it is missing; NULL: "n/a" */
    bool plain;          /* a heading gives it without its label */
    bool disagrees;      /* as of a metric: this value, or the one that it labels, joins passes that disagree */
    bool is_value;       /* of a metric, whose shares above 100 % or below 0 % are explained to people */
    bool is_signed;      /* people see a plus before a number above 0 */
    bool folds;          /* text shows it below its row where the table is too wide; a plain one without its label */
    bool is_told;        /* another column says the same, so text drops it instead of folding it */
    bool is_amount;      /* a whole number that is no name: people see its thousands apart */
    bool is_idle;        /* 0 or missing in all rows of its record, with nothing there that it would count */
    bool is_copied;      /* people copy it, so text has all of it in one line, however long that is */
    bool is_cell;        /* as of a metric: a section has it in a table, and not below its heading */
} kprof_emit_field;
typedef struct kprof_emit_record {
    const kprof_emit_field *fields;
    size_t count;
} kprof_emit_record;
/* The field "group" says this of launches in no NVTX range. */
#define KPROF_GROUP_OF_NO_RANGE "no range"
/* The field of this key; NULL: the record has none. */
const kprof_emit_field *kprof_record_find(const kprof_emit_record *record, const char *key);

/* How people see a list. */
typedef enum kprof_list_shape {
    KPROF_LIST_BLOCKS, /* a few records of many fields */
    KPROF_LIST_TABLE,  /* many short records: the rows of one table */
    KPROF_LIST_GROUPS, /* records with a row for each metric, all with the same fields; its page has no other list but
                          those that are aside */
    KPROF_LIST_CODE,   /* as GROUPS, with a row for each line or instruction */
    KPROF_LIST_ALONE,  /* as TABLE; its page has nothing else, so that it needs no title */
    KPROF_LIST_MAIN,   /* as TABLE; all else on its page is aside, so that it is a format's one table */
} kprof_list_shape;
static inline bool kprof_list_is_grouped(kprof_list_shape shape)
{
    return shape == KPROF_LIST_GROUPS || shape == KPROF_LIST_CODE;
}
typedef struct kprof_emit_list {
    const char *key, *title;
    kprof_list_shape shape;
    bool is_aside; /* beside the list that the page is about: a format of one table leaves it out */
} kprof_emit_list;

/* Describes to an emitter the launches that a page shows. */
typedef struct kprof_emit_launches {
    const kprof_model *model;
    const kprof_emit_metric *columns; /* every metric that launches may show, each once */
    size_t column_count, slot_count;
    bool in_sections; /* the metrics stand in sections; else every launch has its metrics by their names */
    bool has_spreads; /* the launch at hand, where it is a record, stands for several samples */
} kprof_emit_launches;

typedef struct kprof_emitter kprof_emitter;

/* The findings of a launch. */
typedef struct kprof_emit_findings {
    const kprof_findings *findings;
    const kprof_section *next; /* that the verdict says to look at; NULL: the page does not show it */
    bool next_is_hidden;       /* the report has it all the same */
    const kprof_found **told;  /* [told_count]: all, or those that go with the sections chosen */
    size_t told_count;
    const kprof_found **open; /* [open_count] of those told: not evaluated, although the launch has the section */
    size_t open_count;
} kprof_emit_findings;
/* A row of the verdict. The section to look at next has its heading there. As kprof_verdict_describe otherwise. */
kprof_verdict_text kprof_emit_verdict_row(const kprof_emit_findings *all, kprof_verdict_row row, bool base_units);
/* Append a sentence to `out` if a throughput, as printed, is above all its parts in the table. */
void kprof_table_describe_excess(const kprof_emit_table *table, kprof_strbuf *out);
/* Is a value, as printed, a share of more than 100 %, or of less than 0 %? A page that shows one to people explains it
 * at the end. */
bool kprof_is_excess(double value, const char *unit);
#define KPROF_EXCESS_MEANING                                                                                           \
    "Shares above 100 % or below 0 % join counters of several passes, or of a launch too short for them"
/* Add what a finding lacks, for people: metrics, and samples in place of those that are computed from them, since
 * nobody can ask for these. */
void kprof_emit_lacks(const kprof_found *found, kprof_strlist *out);
/* Append the findings not evaluated, each after "; " with its needs: "PartialSectors (needs a__b, c__d)". */
void kprof_emit_not_evaluated(const kprof_emit_findings *all, kprof_strbuf *out);

/* The instructions of a kernel, with what the page says of them. */
typedef struct kprof_emit_code {
    const kprof_code_profiles *profiles; /* valid as long as the model */
    const kprof_profiled_code *code;
    const kprof_profiled_lines *lines;
    const kprof_profiled_lines *ptx;       /* the same instructions by lines of the PTX; NULL: not known */
    const char *kernel, *shape, *measured; /* shape NULL: not known */
    char *const *sources;                  /* [count of lines]: their texts; NULL: not known */
    char *const *ptx_sources;              /* likewise of the PTX */
    const bool *is_idle;                   /* of each number: 0 in all instructions, or not measured */
    const char *const *notes;              /* [note_count]: what is missing, and why */
    size_t note_count;
} kprof_emit_code;

/* An emitter takes this as it is, if it has a place for it: `put` writes members of an object of JSON, without "<". */
typedef struct kprof_emit_members {
    const char *name;
    void (*put)(void *user, kprof_output *out);
    void *user;
} kprof_emit_members;

/* Calls nest as in  page { members* code* stacks? launches { launch { verdict? hot_line? over_time? metric* section {
 * metric* table* rooflines? what_if? finding* } finding* } } }  and  page { list { columns? record { (rows? row*)* } }
 * }. A finding that stands in none of the launch's sections comes after them.
 *
 * An emitter may leave out operations, NULL. By default, launches are a list of GROUPS, a launch is a record of it, and
 * a metric one of its rows; a table and rooflines are their metrics; all else does nothing, also at the end of what the
 * emitter begins itself. `free` need not free the emitter, and what it has taken from its pool. */
typedef struct kprof_emitter_ops {
    size_t size;         /* of an emitter */
    const void *traits;  /* of formats that share operations: how this one differs */
    bool has_layout;     /* all launches of a chip have the sections that the first one has */
    bool sums_instances; /* launches have the metrics of their instructions by name, too, summed */
    void (*page_begin)(kprof_emitter *emitter);
    void (*members)(kprof_emitter *emitter, const kprof_emit_members *members);
    void (*code)(kprof_emitter *emitter, const kprof_emit_code *code);
    void (*stacks)(kprof_emitter *emitter, const kprof_told_stacks *stacks); /* those of the report's launches */
    void (*launches_begin)(kprof_emitter *emitter);                          /* emitter->launches has been set */
    void (*launch_begin)(kprof_emitter *emitter, const kprof_model_launch *launch);
    void (*verdict)(kprof_emitter *emitter, const kprof_emit_findings *findings); /* all of them, found or not */
    void (*hot_line)(kprof_emitter *emitter, const kprof_hot_line *line);
    void (*over_time)(kprof_emitter *emitter, const kprof_launch_timeline *timeline);
    void (*section_begin)(kprof_emitter *emitter, const kprof_section *section);
    void (*metric)(kprof_emitter *emitter, const kprof_emit_metric *metric);
    void (*table)(kprof_emitter *emitter, const kprof_emit_table *table);
    void (*rooflines)(kprof_emitter *emitter, const kprof_emit_roofline *rooflines, size_t count);
    void (*what_if)(kprof_emitter *emitter, const kprof_what_if *curves, size_t count);
    void (*finding)(kprof_emitter *emitter, const kprof_found *found); /* one that was found */
    void (*section_end)(kprof_emitter *emitter);
    void (*launch_end)(kprof_emitter *emitter);
    void (*launches_end)(kprof_emitter *emitter);
    void (*list_begin)(kprof_emitter *emitter, const kprof_emit_list *list);
    void (*columns)(kprof_emitter *emitter, const kprof_emit_record *columns); /* of ALONE: which fields records have */
    void (*record_begin)(kprof_emitter *emitter, const kprof_emit_record *record);
    void (*rows_begin)(kprof_emitter *emitter, const char *key); /* of a record with several kinds of rows: this kind */
    void (*row)(kprof_emitter *emitter, const kprof_emit_record *row);
    void (*record_end)(kprof_emitter *emitter);
    /* In a list of GROUPS, what a launch has over time: for people a row per metric, for programs one per sample. */
    void (*timeline)(kprof_emitter *emitter, const kprof_model_launch *launch, const kprof_launch_timeline *timeline);
    void (*list_end)(kprof_emitter *emitter);
    void (*page_end)(kprof_emitter *emitter);
    void (*free)(kprof_emitter *emitter);
} kprof_emitter_ops;

/* The first member of every emitter. An emitter notes in `status` that it cannot show anything; pages stop then. */
struct kprof_emitter {
    kprof_pool pool;
    const kprof_emitter_ops *ops; /* complete: with defaults */
    const char *page;             /* its name */
    const kprof_print_options *options;
    kprof_emit_launches launches;
    kprof_output *out;
    kprof_status status;
    kprof_emitter_ops own; /* what `ops` points to */
    kprof_emitter_ops raw; /* of a format for people: the operations that get clean records from those of `own` */
};

/* Begin a list, which the other arguments describe as members of kprof_emit_list. */
#define kprof_list_begin(emitter, ...) (emitter)->ops->list_begin((emitter), &(kprof_emit_list){__VA_ARGS__})

/* Does the format encode any text itself? Otherwise core/clean.h cleans the text first: that of records on the way to
 * the emitter, that of reports when it is read. */
bool kprof_format_keeps_text(const kprof_print_options *options);
/* Has each of its values a row with all names of its launch? */
bool kprof_format_repeats_names(const kprof_print_options *options);
/* Does it have the launches of each kernel as a value of its own? */
bool kprof_format_counts_launches(const kprof_print_options *options);
/* Is it one in which ncu prints? */
bool kprof_format_is_of_ncu(const kprof_print_options *options);

/* An emitter for the format of the options. */
kprof_emitter *kprof_emitter_new(const char *page, const kprof_print_options *options, kprof_output *out);
void kprof_emitter_free(kprof_emitter *emitter);
/* The names of a model's kernels, in its memory, as kprof_short_names_new shortens them to `width` columns. */
char **kprof_kernel_names_new(const kprof_model *model, const char *kernel_base, size_t width);
/* The texts of a launch for the columns of formats. */
kprof_launch_texts kprof_emitter_texts(kprof_emitter *emitter, const kprof_model_launch *launch);
/* The status so far, with failed writes; to stop early. */
kprof_status kprof_emitter_status(const kprof_emitter *emitter) KPROF_MUST_CHECK;

/* Fields of records. What makes one special may follow: kprof_field_text("kernel", "Kernel", name, .plain = true). */
#define KPROF_FIELD(its_key, its_label, ...) ((kprof_emit_field){.key = (its_key), .label = (its_label), __VA_ARGS__})
#define kprof_field_text(key, label, value, ...)                                                                       \
    KPROF_FIELD(key, label, .unit = "", .type = KPROF_FIELD_TEXT, .text = (value), __VA_ARGS__)
#define kprof_field_integer(key, label, value, ...)                                                                    \
    KPROF_FIELD(key, label, .unit = "", .type = KPROF_FIELD_INTEGER, .integer = (value), __VA_ARGS__)
/* It counts something, and does not name it. */
#define kprof_field_amount(key, label, value, ...)                                                                     \
    kprof_field_integer(key, label, value, .is_amount = true, __VA_ARGS__)
#define kprof_field_with(key, label, value, its_unit, ...)                                                             \
    KPROF_FIELD(key, label, .unit = (its_unit), .type = KPROF_FIELD_REAL, .real = (value), __VA_ARGS__)
#define kprof_field_real(key, label, value, ...) kprof_field_with(key, label, value, "", __VA_ARGS__)
#define kprof_field_ns(key, label, value, ...)   kprof_field_with(key, label, value, "ns", __VA_ARGS__)
#define kprof_field_pct(key, label, value, ...)  kprof_field_with(key, label, value, "%", __VA_ARGS__)
/* A value of a metric. */
#define kprof_field_value(key, label, value, unit, ...)                                                                \
    kprof_field_with(key, label, value, unit, .is_value = true, __VA_ARGS__)
kprof_emit_field kprof_field_with_role(kprof_emit_field field, kprof_field_role role);
/* Does the record have anything for people? Text and Markdown leave out records that do not. */
bool kprof_record_is_shown(const kprof_emit_record *record);
/* Show a record that has nothing below it. */
void kprof_show_record(kprof_emitter *emitter, const kprof_emit_field *fields, size_t count);
/* A column of a launch as a field; `shape` has room for a text of it. */
kprof_emit_field kprof_field_of_launch(const kprof_launch_texts *texts, kprof_column_id column, char shape[48]);
/* "(65536, 1, 1)"; NULL for a graph as a whole, which has no shape. */
const char *kprof_shape_text(const kprof_launch_record *launch, const uint32_t shape[3], char text[48]);
/* "(65536, 1, 1)x(256, 1, 1)"; "" likewise. */
const char *kprof_shapes_text(const kprof_launch_record *launch, char text[96]);
/* Is its value missing? */
bool kprof_field_is_missing(const kprof_emit_field *field);
/* The value of a REAL as people read it; "n/a" if it is missing. */
kprof_human kprof_field_human(const kprof_emit_field *field, bool base_units);
/* Append its value as people read it: "32", "38.72 %", "n/a". */
void kprof_field_describe(const kprof_emit_field *field, bool base_units, kprof_strbuf *out);
/* Show each cell of a table as a metric, as emitters without an operation for tables do. */
void kprof_emit_cells(kprof_emitter *emitter, const kprof_emit_table *table);
/* A line of characters that shows how a metric goes from the begin of the launch to its end; darker is more. It keeps
 * within `width` columns, of which it needs 3. */
#define KPROF_TIMELINE_SIZE 63
void kprof_timeline_draw(const kprof_launch_timeline *timeline, const kprof_timeline_series *series, size_t width,
                         char out[KPROF_TIMELINE_SIZE]);
/* Show what a launch has over time as emitters without an operation for it do. */
void kprof_emit_timeline(kprof_emitter *emitter, const kprof_model_launch *launch,
                         const kprof_launch_timeline *timeline);
/* The text of the first field that people see above the rows; NULL: there is none. */
const char *kprof_record_heading(const kprof_emit_record *record);

/* An emitter with these operations. */
kprof_emitter *kprof_emitter_allocate(const kprof_emitter_ops *ops);
#define KPROF_EMIT_OPS(id, name, ...) extern const kprof_emitter_ops kprof_emit_##name;
KPROF_FORMATS(KPROF_EMIT_OPS, KPROF_EMIT_OPS)
