/* The pages: each decides what to show and tells an emitter. */
#ifndef KPROF_REPORT_PAGE_H
#define KPROF_REPORT_PAGE_H

#include "report/view.h"

typedef struct kprof_page_context {
    kprof_report *report;
    const kprof_model *model;
    const kprof_print_options *options;
    kprof_output *out;
} kprof_page_context;

typedef kprof_status kprof_page_print(const kprof_page_context *context);

kprof_page_print kprof_page_details; /* sections, launch by launch */
kprof_page_print kprof_page_raw;     /* every metric of each launch */
kprof_page_print kprof_page_summary; /* statistics of each kernel */
kprof_page_print kprof_page_session; /* run, processes, devices, kernels seen, messages */

/* Make the emitter of a page that shows the columns of `view` (NULL: none) and begin the page. */
kprof_status kprof_page_begin(const kprof_page_context *context, const kprof_view *view,
                              kprof_emitter **emitter) KPROF_MUST_CHECK;
/* End the page unless `status` is a failure; frees the emitter and gives the final status. */
kprof_status kprof_page_end(kprof_emitter *emitter, kprof_status status) KPROF_MUST_CHECK;

/* A page that goes launch by launch. */
typedef struct kprof_launch_page {
    kprof_emitter *emitter;
    kprof_view *view;
} kprof_launch_page;
/* Print such a page: `show` is called with it for every launch. The columns are those of `view`. */
kprof_status kprof_page_launches(const kprof_page_context *context, kprof_view *view,
                                 kprof_model_visit *show) KPROF_MUST_CHECK;

/* Fields of records. */
kprof_emit_field kprof_field_text(const char *key, const char *label, const char *text);
kprof_emit_field kprof_field_integer(const char *key, const char *label, int64_t value);
kprof_emit_field kprof_field_real(const char *key, const char *label, double value);

#endif
