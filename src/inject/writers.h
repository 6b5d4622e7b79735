/* Who may write the memory of a device with no call of CUDA. */
#ifndef KPROF_INJECT_WRITERS_H
#define KPROF_INJECT_WRITERS_H

#include <stdbool.h>

/* Why memory of the device can change with no call of CUDA, as "a network card ..."; NULL when it cannot. */
const char *kprof_writers_devices(void);
/* Is a file one through which that happens while it is open? */
bool kprof_writers_is_device_file(const char *path);

#endif
