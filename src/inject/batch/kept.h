/* Records about a batch's launches, kept until the launches' own records are written. */
#pragma once

#include "spool/record.h"

#include <stddef.h>

typedef struct kprof_kept {
    struct kprof_kept *next;
    kprof_record record;
    char *text;     /* owned */
    double *values; /* owned, zeros at first */
} kprof_kept;

typedef struct kprof_kept_list {
    kprof_kept *first, *last;
    size_t bytes; /* that they take */
} kprof_kept_list;

/* A record that has a copy of the text, and room for values. NULL when memory runs out. */
kprof_kept *kprof_kept_new(const char *text, size_t value_count);
/* The list takes the record over, which uses this many of its values. */
void kprof_kept_add(kprof_kept_list *list, kprof_kept *added, size_t value_count);
void kprof_kept_free(kprof_kept_list *list);
