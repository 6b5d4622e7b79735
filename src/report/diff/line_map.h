/* Finds the lines of a source file again in another version of it. */
#pragma once

#include "report/model/source_text.h"

typedef struct kprof_line_map {
    uint32_t *to; /* [count]: the number of each line in the new version, from 1; 0: it is not there any more */
    size_t count;
} kprof_line_map;

/* Join the lines that begin or end both texts, that each has once, or that stand alike beside these. Edited lines are
 * joined, too, where as many of them stand between two joined ones as before. Indents do not count. */
void kprof_line_map_make(kprof_pool *pool, const kprof_source_text *from, const kprof_source_text *to,
                         kprof_line_map *out);
