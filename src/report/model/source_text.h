/* The text of source files, from the report or from this machine. A file on this machine is read only as the path that
 * the report recorded or below the folders that the user gave, and shown only if it is still the one that was compiled:
 * of the same size and hash. */
#pragma once

#include "report/model/code.h"
#include "report/store/source_file.h"

typedef enum kprof_source_state {
    KPROF_SOURCE_STORED,    /* the text is in the report */
    KPROF_SOURCE_FOUND,     /* it is that of a file on this machine, which is the same */
    KPROF_SOURCE_UNCHECKED, /* likewise, of a file that the user named, but the report does not tell its hash */
    KPROF_SOURCE_CHANGED,   /* there is a file, but it is another one */
    KPROF_SOURCE_LINK,      /* the path is a link, which is followed only where the user names it */
    KPROF_SOURCE_UNKNOWN,   /* there is a file at the path, but the report does not tell whether it is the same */
    KPROF_SOURCE_DENIED,    /* there is a file, which the user may not read */
    KPROF_SOURCE_TOO_LARGE, /* there is a file of more than KPROF_SOURCE_MOST_BYTES */
    KPROF_SOURCE_MISSING,
} kprof_source_state;

typedef struct kprof_source_text {
    kprof_source_state state;
    char *text; /* NULL: there is none */
    size_t size;
    size_t *lines; /* [line_count]: where each begins */
    size_t line_count;
} kprof_source_text;

/* Look for the text of a file. A file that is not there or not the same is a state, no failure. To be freed with
 * kprof_source_text_free. */
void kprof_source_text_find(const kprof_code_profiles *profiles, const kprof_code_file *file,
                            const kprof_source_places *places, kprof_source_text *out);
void kprof_source_text_free(kprof_source_text *text); /* members */

/* A copy of line `number`, from 1, with tabs as spaces (caller frees); NULL: there is no such line, or no memory. */
char *kprof_source_text_line(const kprof_source_text *text, uint32_t number);
