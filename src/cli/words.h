/* Command lines as text, the way a report keeps its own. */
#pragma once

#include "core/strbuf.h"

/* Join words with blanks. A word that is empty or has other characters than a shell takes as they are is quoted as for
 * sh. Caller frees. */
char *kprof_words_join(char *const *words);
/* Split a text that was joined so. */
void kprof_words_split(const char *text, kprof_strlist *out);
