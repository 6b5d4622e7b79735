/* Text from reports made safe for terminals and valid as UTF-8. */
#ifndef KPROF_REPORT_CLEAN_H
#define KPROF_REPORT_CLEAN_H

/* A copy (caller frees; NULL when out of memory) in which control characters, bytes that are no UTF-8 and characters
 * that reorder text are spelled out: "\n", "\x1b". NULL is taken as "". */
char *kprof_clean_text(const char *text);

#endif
