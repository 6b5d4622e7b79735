/* Which line of a source file is which one of another version of it. */
#pragma once

#include "report/model/source_text.h"

typedef struct kprof_line_map {
    uint32_t *to; /* [count]: the number of each line in the new version, from 1; 0: it is not there any more */
    size_t count;
} kprof_line_map;

/* Compare two texts: what begins and ends them alike, lines that each has once, what is alike around these, and as many
 * edited lines as there were between them. Indents do not count. `out` is to be freed with kprof_line_map_free. */
void kprof_line_map_make(const kprof_source_text *from, const kprof_source_text *to, kprof_line_map *out);
void kprof_line_map_free(kprof_line_map *map); /* members */
