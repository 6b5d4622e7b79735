/* Reads and writes files to their end, whatever interrupts the calls. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Before a descriptor, a FILE * or a DIR *: it is closed as its block ends, unless it is below 0, or NULL. */
#define KPROF_AUTO_CLOSE    __attribute__((cleanup(kprof_close_at)))
#define KPROF_AUTO_FCLOSE   __attribute__((cleanup(kprof_fclose_at)))
#define KPROF_AUTO_CLOSEDIR __attribute__((cleanup(kprof_closedir_at)))
void kprof_close_at(const int *fd);
void kprof_fclose_at(FILE *const *file);
void kprof_closedir_at(DIR *const *folder);

/* Write `size` bytes. Return how many were written; errno, and no signal, says why these are fewer. Async-signal-safe.
 */
size_t kprof_write_all(int fd, const void *data, size_t size);
/* How long a file of this process may become (ulimit -f); UINT64_MAX: there is no limit. A write beyond it raises
 * SIGXFSZ, which would kill a program that kprof is in. */
uint64_t kprof_file_limit_bytes(void);
/* Write `size` bytes at `offset`, by one call; false: they are not all written, or the limit is in the way. */
bool kprof_write_at(int fd, const void *data, size_t size, uint64_t offset);
/* Read `size` bytes at `offset`. Return how many were read: fewer at the end of the file, or on an error. */
size_t kprof_read_at(int fd, void *out, size_t size, uint64_t offset);
/* Append all of a file. False, and errno tells why: EFBIG: it has more than `most` bytes. */
bool kprof_read_whole(int fd, size_t most, kprof_strbuf *out);
/* Read the start of a file as a text that fits into out[size]; "" where it cannot be read. Return its length. */
size_t kprof_read_text(const char *path, char *out, size_t size);

/* Tell why a file that people have named cannot be made: the format's text, then the folder that is missing, or what
 * errno says. Return KPROF_OUTPUT. */
kprof_status kprof_fail_to_make(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A file below `root`, "" for the machine itself. */
typedef struct kprof_proc_file {
    const char *root, *path;
} kprof_proc_file;

/* Read the number of the file's first line "name: number". False: there is none, and *out is as it was. */
bool kprof_proc_number(const kprof_proc_file *of, const char *name, int base, uint64_t *out);
