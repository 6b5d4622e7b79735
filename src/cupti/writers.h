/* Finds out whether something may write the memory of a device without a call of CUDA. */
#pragma once

#include <stdbool.h>

/* Return what may change memory of the device without a call of CUDA, as "a network card ..."; NULL: nothing does. */
const char *kprof_writers_devices(void);
/* The same, where `folder` has a symbolic link for each file that is open. */
const char *kprof_writers_in(const char *folder);
/* Can another device write memory through such a file while it is open? */
bool kprof_writers_is_device_file(const char *path);

/* Return what may read or write memory of the host while the process' threads do something else, such as io_uring or
 * asynchronous files; NULL: nothing does. */
const char *kprof_writers_of_host(void);
