/* The code of a kernel as JSON, for the page that kprof's HTML has of it. */
#ifndef KPROF_REPORT_HTML_CODE_H
#define KPROF_REPORT_HTML_CODE_H

#include "report/emit/json_text.h"

/* An object of the part "code"; web/src/data.js reads it. NULL when out of memory. */
cJSON *kprof_html_code(const kprof_emit_code *code);

#endif
