/* A map from names to numbers, looked up far more often than it is filled. */
#pragma once

#include "core/pool.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct kprof_names {
    struct kprof_name_slot *slots; /* open addressing; a power of two of them */
    size_t capacity, count;
    kprof_strlist copies; /* of the names that it was told to keep, in that order */
    kprof_pool *pool;     /* that all of it is taken from, so that nobody frees it; NULL: none */
} kprof_names;

#define KPROF_NAMES_NONE ((size_t)-1)

/* Add a name (borrowed, must outlive the map); a name that is there keeps its number. False when out of memory. */
bool kprof_names_add(kprof_names *names, const char *name, size_t number);
/* Add a copy of a name likewise. */
bool kprof_names_keep(kprof_names *names, const char *name, size_t number);
/* The number of a name. A new one is kept, and its number is how many there were before. True: it is new. */
bool kprof_names_number(kprof_names *names, const char *name, size_t *number);
/* The number of a name, or KPROF_NAMES_NONE. */
size_t kprof_names_find(const kprof_names *names, const char *name);
void kprof_names_free(kprof_names *names); /* members */
