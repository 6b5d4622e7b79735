/* The pages: each decides what to show and tells an emitter. */
#pragma once

#include "report/emit/emit.h"
#include "report/model/places.h"

/* A field that is for programs, and not shown to people. */
static inline kprof_emit_field machine(kprof_emit_field field)
{
    return kprof_field_with_role(field, KPROF_ROLE_MACHINE);
}
static inline kprof_emit_field shown_if(kprof_emit_field field, bool is_shown)
{
    return is_shown ? field : machine(field);
}
/* Counts or numbers something, for programs. */
static inline kprof_emit_field machine_count(const char *key, const char *label, uint64_t count)
{
    return machine(kprof_field_integer(key, label, (int64_t)count));
}
/* People see nothing where it is missing. */
static inline kprof_emit_field or_nothing(kprof_emit_field field)
{
    field.missing = "";
    return field;
}

/* People see it below its row, where it is there. */
static inline kprof_emit_field note(kprof_emit_field field)
{
    return kprof_field_with_role(or_nothing(field), KPROF_ROLE_NOTE);
}

/* A report that a page shows. */
typedef struct kprof_page_report {
    kprof_report *file;
    kprof_model model;
} kprof_page_report;

typedef struct kprof_page_context {
    const char *name;                 /* of the page */
    const kprof_page_report *reports; /* as many as the page's row says */
    const void *content;              /* what else the page is about; what a page of no report shows */
    const kprof_print_options *options;
    kprof_output *out;
} kprof_page_context;

/* It need not return failures to read reports, which these note. */
typedef kprof_status kprof_page_print(const kprof_page_context *context);
#define KPROF_PAGE_PRINT(id, name, reports) kprof_page_print kprof_page_##name;
KPROF_PAGES(KPROF_PAGE_PRINT)

/* A page. Those of reports are KPROF_PAGES; others have rows of their own. */
typedef struct kprof_page_row {
    const char *name;
    size_t report_count;
    kprof_page_print *print;
    const char *less; /* what makes it print less; NULL: to choose launches */
} kprof_page_row;

/* The input of a page. */
typedef struct kprof_page_input {
    kprof_report *const *reports; /* [report_count], open */
    size_t report_count;
    const void *content;
} kprof_page_input;

/* All about a report in one: the kernels, what the session page shows, then what the details page does. */
extern const kprof_page_row kprof_whole_page;
/* When what of the program ran, for a format that has a place for that. NOT_COLLECTED when the report has no trace. */
extern const kprof_page_row kprof_program_page;

/* Print a page to `out` in the format of `options`. USAGE when the source has not as many reports as the page shows,
 * OUTPUT when `out` cannot be written. */
kprof_status kprof_page_show(const kprof_page_row *page, const kprof_page_input *source,
                             const kprof_print_options *options, FILE *out) KPROF_MUST_CHECK;

/* Make the emitter of a page and begin the page. */
kprof_emitter *kprof_page_begin(const kprof_page_context *context);
/* End the page unless `status` is a failure. Frees the emitter and returns the final status. */
kprof_status kprof_page_end(kprof_emitter *emitter, kprof_status status) KPROF_MUST_CHECK;

/* The names of the kernels of the first report for lines of text, in memory of its model. */
typedef struct kprof_page_names {
    char **beside;  /* by kernel, as there is room beside the numbers of a row */
    char **below;   /* likewise, in three lines below it */
    bool is_beside; /* lines are long enough for a name beside numbers */
} kprof_page_names;
void kprof_page_names_new(const kprof_page_context *context, kprof_page_names *out);
/* The name of a kernel, which people see beside the numbers of its row or below it. */
kprof_emit_field kprof_page_name_field(const kprof_page_context *context, const kprof_page_names *names,
                                       const kprof_model_kernel *kernel);

/* The names of a model's kernels for headings and rows of text, three lines long at most, in memory of the model; NULL:
 * lines have no end. */
char **kprof_page_whole_names(const kprof_print_options *options, const kprof_model *model);

/* Show the run, its processes and devices, the passes, what is left out, the kernels seen and the messages. */
void kprof_page_show_session(kprof_emitter *emitter, const kprof_model *model);
/* Show the code of each kernel whose instructions were measured. */
kprof_status kprof_page_show_code(kprof_emitter *emitter, const kprof_page_context *context) KPROF_MUST_CHECK;
/* How the times of kernels spread over merged reports, or a run's processes, in memory of the model. */
typedef struct kprof_page_shares kprof_page_shares;
typedef struct kprof_source_spread {
    size_t count;                                 /* of sources that ran the kernel */
    double least_ns, median_ns, most_ns, mean_ns; /* of the time of all its launches in one source; NaN: not known */
    const char *slowest;                          /* source; NULL: not known */
} kprof_source_spread;
kprof_status kprof_page_shares_new(const kprof_page_context *context, kprof_page_shares **out) KPROF_MUST_CHECK;
/* Name the sources: "Reports", or "Processes" of a run. NULL: there are not several, or no kernel of a run ran in
 * several. */
const char *kprof_page_shares_label(const kprof_page_shares *all);
/* Before the sources page has sorted them. */
kprof_source_spread kprof_page_shares_of(const kprof_page_shares *all, const kprof_model_kernel *kernel);
/* Show what the sources page shows; nothing where kprof_page_shares_label has no name. */
kprof_status kprof_page_show_shares(kprof_emitter *emitter, const kprof_page_context *context) KPROF_MUST_CHECK;

/* Show what --census counted and timed; nothing where the report has no census. */
kprof_status kprof_page_show_census(kprof_emitter *emitter, const kprof_page_context *context) KPROF_MUST_CHECK;
/* Show when what of the program ran, for a report that has a trace, whose pages were checked. */
void kprof_page_show_program(kprof_emitter *emitter, kprof_report *report);
/* Show in one line all that --top leaves out of a list: so many rows, with launches that took so long. */
typedef struct kprof_page_rest {
    size_t rows;
    uint64_t launches;
    double time_ns, all_ns; /* NaN: not known */
} kprof_page_rest;
void kprof_page_show_rest(kprof_emitter *emitter, const kprof_emit_list *list, const char *time_label,
                          const kprof_page_rest *rest);
/* Show the launches with their sections. */
kprof_status kprof_page_show_details(kprof_emitter *emitter, const kprof_page_context *context) KPROF_MUST_CHECK;

/* Visit the launches that the filter and the conditions of the options take, as kprof_model_joined_launches does. Where
 * there are conditions: UNKNOWN_NAME when the report does not have a metric, USAGE for a unit that is not the metric's,
 * NO_MATCH when no launch meets them; each with a message. */
kprof_status kprof_page_walk(const kprof_page_context *context, kprof_model_visit *visit, void *user) KPROF_MUST_CHECK;
/* The same, for each part. */
kprof_status kprof_page_walk_parts(const kprof_page_context *context, kprof_model_parts parts, kprof_model_visit *visit,
                                   void *user) KPROF_MUST_CHECK;

/* The part of a page that goes launch by launch through its first report. */
typedef struct kprof_launch_page {
    kprof_view *view;
    kprof_rules *rules;          /* NULL: no findings are shown */
    kprof_place_finder *finder;  /* NULL likewise */
    kprof_emitter *emitter;      /* which has begun the page */
    struct kprof_hot_cache *hot; /* NULL: no line is named */
    kprof_report *file;          /* that timelines are read from */
    bool has_timelines;          /* else none is shown */
} kprof_launch_page;
/* Show the launches: `show` is called with the part for each. The columns are those of its view. */
kprof_status kprof_page_launches(const kprof_page_context *context, kprof_launch_page *page,
                                 kprof_model_visit *show) KPROF_MUST_CHECK;
