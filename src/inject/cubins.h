/* Writes the cubins whose instructions were measured to the session directory. */
#pragma once

#include <stdint.h>

/* Write the cubin that has CUPTI's checksum to a file, and its record, unless that was done before. Call it before the
 * first record of its functions, outside of the loading of modules. Needs the gate. */
void kprof_cubins_tell(uint64_t crc);
