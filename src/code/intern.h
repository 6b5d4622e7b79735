/* Texts by number: each text once. What somebody else made up may be long and many: both have a limit. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

typedef struct kprof_intern {
    kprof_strlist *texts; /* borrowed: gets the texts */
    size_t bytes_left;    /* that further texts may have */
    size_t compared_left; /* bytes of texts that may still be looked up, new or not */
    void *root;           /* of a tree of their numbers */
} kprof_intern;

/* The number of a text in `texts`, which it joins when it is new. Returns KPROF_UNSUPPORTED past a limit. */
kprof_status kprof_intern_text(kprof_intern *intern, const char *text, uint32_t *number);
void kprof_intern_free(kprof_intern *intern);
