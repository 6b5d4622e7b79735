/* The spool: one append-only file per process, "<pid>-<n>.spool" in the session directory. A file header (magic,
 * version, header size), then records: payload length, type, checksum, payload. A record of an unknown type is skipped
 * by its length; a cut or damaged record ends the spool there and nothing before it is lost. */
#pragma once

#include "spool/record.h"

typedef struct kprof_spool_writer kprof_spool_writer;

/* Create the spool of this process in `dir` (mode 0600): an absolute path, since the application may change directory,
 * of a folder that this user alone has access to (core/folder.h). */
kprof_status kprof_spool_writer_open(const char *dir, kprof_spool_writer **out) KPROF_MUST_CHECK;
/* Append one record with one write(2), at once unless it is held. Thread-safe. Survives an application that closes or
 * reuses every file descriptor: the descriptor is checked against the file's identity first and reopened. OUTPUT when
 * the disk is full: the partial record is truncated away, the file is marked as one that lacks a record, and the writer
 * stays usable. OUTPUT also in a signal handler that has interrupted a write: it neither waits nor writes. Without a
 * record it is kprof_spool_release. */
kprof_status kprof_spool_write(kprof_spool_writer *writer, const kprof_record *record) KPROF_MUST_CHECK;
/* Until kprof_spool_release, hold the records of launches in memory and write many at once, since a write takes longer
 * than making a record. Any other record writes the held ones first. Call the pair around work of milliseconds only: a
 * process that is killed meanwhile loses the held records, and so does one that a signal handler ends by _exit or exec.
 * kprof_spool_release fails as kprof_spool_write does; the records before the first that does not fit are written. */
void kprof_spool_hold(kprof_spool_writer *writer);
kprof_status kprof_spool_release(kprof_spool_writer *writer) KPROF_MUST_CHECK;
/* Close the file, since nobody reads it any more. Thread-safe; each later kprof_spool_write gives OUTPUT, and logs
 * nothing. The held records are lost. */
void kprof_spool_writer_stop(kprof_spool_writer *writer);
void kprof_spool_writer_close(kprof_spool_writer *writer);
/* Forget the writer in a forked child: closes nothing that the parent needs, writes nothing. */
void kprof_spool_writer_abandon(kprof_spool_writer *writer);

typedef struct kprof_spool_reader kprof_spool_reader;

typedef enum kprof_spool_next_result {
    KPROF_SPOOL_RECORD,  /* *record is filled */
    KPROF_SPOOL_WAIT,    /* no whole record now; more may be written: call again later */
    KPROF_SPOOL_DAMAGED, /* nothing after this point can be read; a message was logged once */
} kprof_spool_next_result;

/* Open a spool in a folder (a descriptor, borrowed, or AT_FDCWD) that may still be growing. BAD_SPOOL for a file that
 * is not one, UNSUPPORTED for one of another version; a file shorter than its header is not an error yet. */
kprof_status kprof_spool_reader_open(int folder, const char *name, kprof_spool_reader **out) KPROF_MUST_CHECK;
kprof_spool_next_result kprof_spool_next(kprof_spool_reader *reader, kprof_record *record);
/* Did its writer fail to write a record? Then records are missing after the last readable one. Opens nothing. */
bool kprof_spool_lacks_records(const kprof_spool_reader *reader);
/* Close its file until the next kprof_spool_next: a run may have more processes than kprof may have descriptors. */
void kprof_spool_reader_rest(kprof_spool_reader *reader);
/* May there be more than the last kprof_spool_next saw, or only the rest of a record? Opens nothing. */
bool kprof_spool_has_news(const kprof_spool_reader *reader);
void kprof_spool_reader_close(kprof_spool_reader *reader);
