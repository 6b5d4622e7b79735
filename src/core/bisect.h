/* Looking things up in arrays that are sorted. */
#pragma once

#include <stddef.h>

/* Set `place`, a size_t, to the first of `count` elements that is not before what is looked for, or to their number:
 * `is_before` is an expression about the element `middle`. */
#define KPROF_BISECT(place, count, is_before)                                                                          \
    for (size_t middle = 0, end_of_search = ((place) = 0, (count)); (place) < end_of_search;) {                        \
        middle = (place) + (end_of_search - (place)) / 2;                                                              \
        if (is_before)                                                                                                 \
            (place) = middle + 1;                                                                                      \
        else                                                                                                           \
            end_of_search = middle;                                                                                    \
    }
