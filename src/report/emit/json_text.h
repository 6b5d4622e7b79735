/* The part that the formats made of JSON share: numbers, and values written so that their texts cannot steer a
 * terminal. */
#ifndef KPROF_REPORT_JSON_TEXT_H
#define KPROF_REPORT_JSON_TEXT_H

#include "report/emit/emit.h"

#include <cjson/cJSON.h>

/* Numbers as text: cJSON's own printing follows the locale and is slow. null for a number that is not finite. NULL when
 * out of memory. */
cJSON *kprof_json_number(double value);
cJSON *kprof_json_integer(int64_t value);

/* A curve of theoretical occupancy; NULL when out of memory. */
cJSON *kprof_json_what_if(const kprof_what_if *curve);

/* Take a text over; null when it is empty. */
cJSON *kprof_json_take(kprof_emitter *emitter, kprof_strbuf *text);
/* A text of a finding with its values, as people read it. */
cJSON *kprof_json_found(kprof_emitter *emitter, const kprof_found *found, const char *text);

/* Write what cJSON has printed, and free it; NULL, which is out of memory, becomes the emitter's status. */
void kprof_json_write_text(kprof_emitter *emitter, char *text);
/* Print a value in one line, and free it. */
void kprof_json_write(kprof_emitter *emitter, cJSON *value);

#endif
