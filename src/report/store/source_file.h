/* Files that a report or a session names. They may be anyone's: no link is followed, and no pipe is waited for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a source file that kprof looks into. */
#define KPROF_SOURCE_MOST_BYTES ((size_t)16 << 20)

/* Open a regular file of at most `most` bytes in a folder (a descriptor, or AT_FDCWD). Return the descriptor, which the
 * caller closes, and *size; -1: there is none. */
int kprof_source_open(int folder, const char *name, size_t most, size_t *size);
/* Read `size` bytes; false where the file has fewer. */
bool kprof_source_read(int file, char *bytes, size_t size);
/* Tells whether a text is still the same: 16 hexadecimal digits, as code_file.hash has them. */
void kprof_source_hash(const char *bytes, size_t size, char hash[17]);
