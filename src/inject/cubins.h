/* Writes the cubins whose instructions were measured to the session directory. */
#pragma once

#include <stdint.h>

/* Write the cubin that has CUPTI's checksum and this function to a file, and its record, unless that was done before.
 * Return the number that records of its functions have in place of the checksum. Call it before the first of these,
 * outside of the loading of modules. Needs the gate. */
uint64_t kprof_cubins_tell(uint64_t crc, const char *function);
