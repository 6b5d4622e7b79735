/* Who may write the memory of a device with no call of CUDA. */
#ifndef KPROF_CUPTI_WRITERS_H
#define KPROF_CUPTI_WRITERS_H

#include <stdbool.h>

/* Why memory of the device can change with no call of CUDA, as "a network card ..."; NULL when it cannot. */
const char *kprof_writers_devices(void);
/* The same, where `folder` has a symbolic link for each file that is open. */
const char *kprof_writers_in(const char *folder);
/* Is a file one through which that happens while it is open? */
bool kprof_writers_is_device_file(const char *path);

#endif
