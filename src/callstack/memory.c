/* A read is a call of the kernel, and most of its cost is the call itself. So blocks are kept for the walk, and those
 * that the walk before used are read by one call as the walk begins. */
#include "callstack/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Up to this many blocks cost less to read than another range of memory. */
#define GAP_BLOCKS 8
#define SLOTS      (4 * KPROF_MEMORY_BLOCKS_MAX)

struct kprof_memory {
    pid_t pid;
    size_t count;
    uintptr_t blocks[KPROF_MEMORY_BLOCKS_MAX]; /* their numbers: address / KPROF_MEMORY_BLOCK_BYTES */
    uintptr_t wanted[KPROF_MEMORY_BLOCKS_MAX];
    bool used[KPROF_MEMORY_BLOCKS_MAX];
    uint16_t slots[SLOTS]; /* a place in `blocks`, from 1; open addressing */
    struct iovec ranges[KPROF_MEMORY_BLOCKS_MAX];
    char data[KPROF_MEMORY_BLOCKS_MAX][KPROF_MEMORY_BLOCK_BYTES];
};

kprof_memory *kprof_memory_new(void)
{
    kprof_memory *memory = calloc(1, sizeof *memory);
    if (memory)
        memory->pid = getpid();
    return memory;
}

void kprof_memory_free(kprof_memory *memory)
{
    free(memory);
}

static uint16_t *slot_of(kprof_memory *memory, uintptr_t block)
{
    size_t i = (size_t)(block * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS;
    while (memory->slots[i] && memory->blocks[memory->slots[i] - 1] != block)
        i = (i + 1) % SLOTS;
    return &memory->slots[i];
}

static int compare_blocks(const void *a, const void *b)
{
    const uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return left < right ? -1 : left > right;
}

/* Put the blocks that were used into `blocks` in the order of their addresses. */
static size_t keep_used(kprof_memory *memory)
{
    size_t count = 0;
    bool is_sorted = true;
    for (size_t i = 0; i < memory->count; i++) {
        if (!memory->used[i])
            continue;
        is_sorted = is_sorted && (count == 0 || memory->blocks[count - 1] < memory->blocks[i]);
        memory->blocks[count++] = memory->blocks[i];
    }
    if (!is_sorted)
        qsort(memory->blocks, count, sizeof *memory->blocks, compare_blocks);
    return count;
}

/* Fill gaps between `count` blocks that cost less to read than another range. A page is larger than a gap. */
static size_t fill_gaps(kprof_memory *memory, size_t count)
{
    size_t filled = 0;
    memcpy(memory->wanted, memory->blocks, count * sizeof *memory->blocks);
    for (size_t i = 0; i < count && filled < KPROF_MEMORY_BLOCKS_MAX; i++) {
        const uintptr_t block = memory->wanted[i], last = filled > 0 ? memory->blocks[filled - 1] : block;
        for (uintptr_t gap = last + 1; block - last <= GAP_BLOCKS && gap < block; gap++)
            if (filled < KPROF_MEMORY_BLOCKS_MAX - 1)
                memory->blocks[filled++] = gap;
        memory->blocks[filled++] = block;
    }
    return filled;
}

void kprof_memory_begin(kprof_memory *memory)
{
    const size_t count = fill_gaps(memory, keep_used(memory));
    size_t ranges = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && memory->blocks[i] == memory->blocks[i - 1] + 1) {
            memory->ranges[ranges - 1].iov_len += KPROF_MEMORY_BLOCK_BYTES;
            continue;
        }
        void *start = (void *)(memory->blocks[i] * KPROF_MEMORY_BLOCK_BYTES); /* NOLINT(performance-no-int-to-ptr) */
        memory->ranges[ranges++] = (struct iovec){start, KPROF_MEMORY_BLOCK_BYTES};
    }
    /* The kernel copies whole ranges and stops before the first one that it cannot copy. */
    const struct iovec local = {memory->data, count * KPROF_MEMORY_BLOCK_BYTES};
    const ssize_t got = ranges > 0 ? process_vm_readv(memory->pid, &local, 1, memory->ranges, ranges, 0) : 0;
    memory->count = got > 0 ? (size_t)got / KPROF_MEMORY_BLOCK_BYTES : 0;
    memset(memory->slots, 0, sizeof memory->slots);
    for (size_t i = 0; i < memory->count; i++) {
        memory->used[i] = false;
        *slot_of(memory, memory->blocks[i]) = (uint16_t)(i + 1);
    }
}

/* NULL where there is no such memory. */
static const char *find_block(kprof_memory *memory, uintptr_t block)
{
    uint16_t *slot = slot_of(memory, block);
    if (!*slot) {
        if (memory->count == KPROF_MEMORY_BLOCKS_MAX) { /* forget them */
            memset(memory->slots, 0, sizeof memory->slots);
            memory->count = 0;
            slot = slot_of(memory, block);
        }
        void *start = (void *)(block * KPROF_MEMORY_BLOCK_BYTES); /* NOLINT(performance-no-int-to-ptr) */
        const struct iovec local = {memory->data[memory->count], KPROF_MEMORY_BLOCK_BYTES};
        const struct iovec remote = {start, KPROF_MEMORY_BLOCK_BYTES};
        if (process_vm_readv(memory->pid, &local, 1, &remote, 1, 0) != KPROF_MEMORY_BLOCK_BYTES)
            return NULL;
        memory->used[memory->count] = false;
        memory->blocks[memory->count++] = block;
        *slot = (uint16_t)memory->count;
    }
    memory->used[*slot - 1] = true;
    return memory->data[*slot - 1];
}

bool kprof_memory_read(kprof_memory *memory, uintptr_t address, void *out, size_t bytes)
{
    char *to = out;
    if (bytes > UINTPTR_MAX - address)
        return false;
    while (bytes > 0) {
        const size_t offset = address % KPROF_MEMORY_BLOCK_BYTES;
        const size_t most = KPROF_MEMORY_BLOCK_BYTES - offset, part = bytes < most ? bytes : most;
        const char *block = find_block(memory, address / KPROF_MEMORY_BLOCK_BYTES);
        if (!block)
            return false;
        memcpy(to, block + offset, part);
        to += part;
        address += part;
        bytes -= part;
    }
    return true;
}
