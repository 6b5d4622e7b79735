/* Answers about one chip, each a list of strings: those of earlier runs and those of this one. */
#ifndef KPROF_HOST_ANSWERS_H
#define KPROF_HOST_ANSWERS_H

#include "core/strbuf.h"

typedef struct kprof_answers kprof_answers;

/* NULL when out of memory. */
kprof_answers *kprof_answers_new(void);
void kprof_answers_free(kprof_answers *answers);

/* Append the answer to `out`; false, with `out` as it was, when there is none or no memory. */
bool kprof_answers_get(const kprof_answers *answers, char kind, const char *name, kprof_strlist *out);
/* Remember an answer that is not there yet; forgets in silence when there are too many or no memory. */
void kprof_answers_put(kprof_answers *answers, char kind, const char *name, const kprof_strlist *texts);

/* Append the answers to `out`, for kprof_answers_read: where all are more than is worth keeping, the latest. False when
 * nothing was put since they were read, or too much to be worth keeping. */
bool kprof_answers_write(const kprof_answers *answers, kprof_strbuf *out);
/* Fill an empty store with what was written. False, with nothing read, when the bytes were not written so. */
bool kprof_answers_read(kprof_answers *answers, const kprof_strbuf *bytes);

#endif
