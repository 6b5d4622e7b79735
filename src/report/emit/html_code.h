/* The code of a kernel as JSON, for the page that kprof's HTML has of it. */
#pragma once

#include "report/emit/json_text.h"

/* An object of the part "code"; web/src/data.js reads it. */
cJSON *kprof_html_code(const kprof_emit_code *code, kprof_source_view view);
