/* Who but the calling thread may write the process' memory at any time. */
#ifndef KPROF_INJECT_WRITERS_H
#define KPROF_INJECT_WRITERS_H

#include <stdbool.h>

/* Why memory of the device can change with no call of CUDA, as "a network card ..."; NULL when it cannot. */
const char *kprof_writers_devices(void);
/* Is a file one through which that happens while it is open? */
bool kprof_writers_is_device_file(const char *path);
/* Why memory that the host reaches can change while the calling thread does nothing, as "other threads of the
 * application reach ..."; NULL when it cannot. Memory that other processes share is not asked for here: registering it
 * with CUDA shows as KPROF_SHARES_WITH_DEVICES. */
const char *kprof_writers_others(void);

#endif
