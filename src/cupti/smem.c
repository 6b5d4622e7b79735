/* Tells which of the carve-outs of compute capability 9.0 a launch gets. */
#include "cupti/smem.h"

#include <stddef.h>

#define KB               1024u
#define UNIT_BYTES       128u
#define SHARE_LIMIT      (132 * KB) /* blocks beyond the occupancy get no more than this */
#define MAX_BLOCKS       32u
#define IDLE_THREADS     8192u /* without shared memory: hold the system's part of this many threads */
#define LARGEST_CARVEOUT (228 * KB)

static const uint32_t carveouts[] = {8 * KB,   16 * KB,  32 * KB,  64 * KB, 100 * KB,
                                     132 * KB, 164 * KB, 196 * KB, 228 * KB};

static uint32_t smallest_that_holds(uint64_t bytes)
{
    size_t i = 0;
    while (carveouts[i] < bytes && carveouts[i] < LARGEST_CARVEOUT)
        i++;
    return carveouts[i];
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

uint32_t kprof_smem_configured_bytes(const kprof_smem_request *request)
{
    if (request->cc_major != 9 || request->cc_minor != 0 || request->threads_per_block == 0)
        return 0;
    uint64_t used = ((uint64_t)request->smem_per_block_bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
    uint64_t per_block = used + request->reserved_smem_per_block_bytes;
    uint32_t preferred = 0;
    if (request->carveout_pct >= 0)
        preferred = smallest_that_holds((uint64_t)LARGEST_CARVEOUT * (uint32_t)request->carveout_pct / 100);
    if (used == 0)
        return most(preferred,
                    smallest_that_holds(least(MAX_BLOCKS, IDLE_THREADS / request->threads_per_block) * per_block));
    if (request->carveout_pct >= 0)
        return most(preferred, smallest_that_holds(per_block));
    /* The driver's own choice: the smallest carve-out that holds twice the occupancy, or once the occupancy for blocks
     * of 1,024 threads. Beyond 132 KB it holds the occupancy only. */
    uint32_t occupancy = request->max_blocks_per_sm;
    uint32_t wanted = least(MAX_BLOCKS, request->threads_per_block < 1024 ? 2 * occupancy : occupancy);
    uint32_t limit = most(SHARE_LIMIT, smallest_that_holds(occupancy * per_block));
    return least(smallest_that_holds(wanted * per_block), limit);
}
