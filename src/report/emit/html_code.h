/* The code of a kernel as JSON, for the page that kprof's HTML has of it. */
#pragma once

#include "report/emit/json_text.h"

/* The object of the part "files", which all codes of the page refer to by number; web/src/data.js reads it. */
cJSON *kprof_html_code_files(const kprof_code_profiles *profiles);
/* An object of the part "code", likewise. */
cJSON *kprof_html_code(const kprof_emit_code *code, kprof_source_view view);
