/* Finds out whether something may write the memory of a device without a call of CUDA. */
#ifndef KPROF_CUPTI_WRITERS_H
#define KPROF_CUPTI_WRITERS_H

#include <stdbool.h>

/* Return what may change memory of the device without a call of CUDA, as "a network card ..."; NULL: nothing. */
const char *kprof_writers_devices(void);
/* The same, where `folder` has a symbolic link for each file that is open. */
const char *kprof_writers_in(const char *folder);
/* Is a file one through which that happens while it is open? */
bool kprof_writers_is_device_file(const char *path);

/* Return what may read or write memory of the host for the process, while its threads do something else: io_uring or
 * asynchronous files; NULL: nothing. */
const char *kprof_writers_of_host(void);

#endif
