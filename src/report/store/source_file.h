/* Files that a report or a session names. They may be anyone's: no link is followed, and no pipe is waited for. */
#pragma once

#include "core/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a source file that kprof looks into. */
#define KPROF_SOURCE_MOST_BYTES ((size_t)16 << 20)
/* Files and folders below those of the user that kprof looks at. */
#define KPROF_SOURCE_ENTRIES_MAX 1000000

/* Open a regular file of at most `most` bytes in a folder (a descriptor, or AT_FDCWD). Return the descriptor, which the
 * caller closes, and *size; -1: there is none, and errno tells why: ELOOP of a link, 0 of what else is no
 * regular file. */
int kprof_source_open(int folder, const char *name, size_t most, size_t *size);
/* The files below the folders that the user gave, which kprof reads once. {0}: it has not yet. */
typedef struct kprof_source_index {
    kprof_strbuf names;   /* of files, one after the other */
    kprof_strbuf entries; /* array: each file, by its name once all are there */
    struct found_folder {
        size_t given;    /* the number of the user's folder */
        char *below;     /* its path in there, "" of that itself; owned */
    } * folders, *links; /* these lead to folders */
    size_t folder_count, link_count;
    size_t looked_at;         /* of all entries of folders */
    kprof_strbuf passed_over; /* the first folder that kprof does not look into, and why */
    size_t passed_count;
    bool is_built, is_cut; /* there are more of these than kprof looks at */
} kprof_source_index;

void kprof_source_index_free(kprof_source_index *index); /* members */

/* The files and folders that the user gave. */
typedef struct kprof_source_places {
    const kprof_strlist *folders, *files; /* NULL: none */
    kprof_source_index *index;            /* of the folders, for further searches; NULL: there are none */
} kprof_source_places;
/* Takes a file of a folder, a descriptor or AT_FDCWD. False: look no further. */
typedef bool kprof_source_taker(void *user, int folder, const char *name);
/* Offer what has the last part of this path as its name: files that the user gave, then those below the folders. Of
 * several come first those in folders of the same names. A link is followed only where the user gave it. */
void kprof_source_search(const kprof_source_places *places, const char *path, kprof_source_taker *take, void *user);
/* Count the parts at the ends of two paths that are the same. Several slashes are one. */
size_t kprof_source_same_end(const char *a, const char *b);
/* Tells whether a text is still the same: 16 hexadecimal digits, as code_file.hash has them. */
void kprof_source_hash(const char *bytes, size_t size, char hash[17]);
