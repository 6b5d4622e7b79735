/* Answers about one chip, each a list of strings: those of earlier runs and those of this one. */
#pragma once

#include "core/cache.h"

typedef struct kprof_answers kprof_answers;

/* NULL when out of memory. */
kprof_answers *kprof_answers_new(void);
void kprof_answers_free(kprof_answers *answers);

/* Append the answer to `out`; false, with `out` as it was, when there is none. */
bool kprof_answers_get(kprof_answers *answers, char kind, const char *name, kprof_strlist *out);
/* Remember an answer that kprof_answers_get did not find, unless it is there by now or there are too many. */
void kprof_answers_put(kprof_answers *answers, char kind, const char *name, const kprof_strlist *texts);

/* Write the answers to `out`, which is empty, for the cache: where all are more than is worth keeping, the latest.
 * False when nothing was put since they were read, or too much to be worth keeping. */
bool kprof_answers_write(const kprof_answers *answers, kprof_strbuf *out);
/* Let an empty store find the answers that the cache has under `key`, but no damaged ones. False: there are none. */
bool kprof_answers_read(kprof_answers *answers, const kprof_strbuf *key);

/* Append what identifies the libraries that answer, for the cache's key: path, size and times of libcupti and
 * libnvperf_host. It opens neither: it looks at the files that kprof would open. False when it cannot find them. */
bool kprof_cupti_identify(kprof_strbuf *out);
