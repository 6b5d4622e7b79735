/* A read is a call of the kernel, and most of its cost is the call itself, and then each range of memory. So what is
 * missing is read with all of its block, and what the walk before used is read by one call as the walk begins. */
#include "callstack/memory.h"

#include "core/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK KPROF_MEMORY_BLOCK_BYTES
#define SLOTS (4 * KPROF_MEMORY_BLOCKS_MAX)

/* Offsets within a block. */
typedef struct span {
    uint16_t from, to; /* nothing: BLOCK and 0 */
} span;

typedef struct block {
    uintptr_t number; /* its address / BLOCK */
    span read, used;
} block;

struct kprof_memory {
    pid_t pid;
    size_t count, last; /* the block that was read from last */
    block blocks[KPROF_MEMORY_BLOCKS_MAX];
    uint16_t slots[SLOTS]; /* a place in `blocks`, from 1; open addressing */
    struct iovec parts[KPROF_MEMORY_BLOCKS_MAX], ranges[KPROF_MEMORY_BLOCKS_MAX];
    char data[KPROF_MEMORY_BLOCKS_MAX][BLOCK];
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

static uint16_t *slot_of(kprof_memory *memory, uintptr_t number)
{
    size_t i = kprof_hash_number(number) % SLOTS;
    while (memory->slots[i] && memory->blocks[memory->slots[i] - 1].number != number)
        i = (i + 1) % SLOTS;
    return &memory->slots[i];
}

static void forget(kprof_memory *memory)
{
    memset(memory->slots, 0, sizeof memory->slots);
    memory->count = 0;
}

static void *address_of(uintptr_t number, size_t offset)
{
    return (void *)(number * BLOCK + offset); /* NOLINT(performance-no-int-to-ptr): the kernel follows it */
}

static int compare_blocks(const void *a, const void *b)
{
    const block *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* Keep the blocks that were used, in the order of their addresses. */
static size_t keep_used(kprof_memory *memory)
{
    size_t count = 0;
    bool is_sorted = true;
    for (size_t i = 0; i < memory->count; i++) {
        const block *used = &memory->blocks[i];
        if (used->used.to == 0)
            continue;
        is_sorted = is_sorted && (count == 0 || memory->blocks[count - 1].number < used->number);
        memory->blocks[count++] = *used;
    }
    if (!is_sorted)
        qsort(memory->blocks, count, sizeof *memory->blocks, compare_blocks);
    return count;
}

/* Say what to read of `count` blocks, and where to. Return the number of ranges of memory: another range costs more
 * than to read up to a block between two. */
static size_t plan_reads(kprof_memory *memory, size_t count)
{
    size_t ranges = 0;
    for (size_t i = 0; i < count; i++) {
        block *now = &memory->blocks[i], *last = i > 0 ? now - 1 : NULL;
        const bool joins = last && now->number == last->number + 1 && last->used.to >= now->used.from;
        if (joins) {
            memory->parts[i - 1].iov_len += BLOCK - last->used.to;
            memory->ranges[ranges - 1].iov_len += BLOCK - last->used.to;
            last->used.to = BLOCK;
            now->used.from = 0;
        }
        const size_t bytes = now->used.to - now->used.from;
        memory->parts[i] = (struct iovec){memory->data[i] + now->used.from, bytes};
        if (joins)
            memory->ranges[ranges - 1].iov_len += bytes;
        else
            memory->ranges[ranges++] = (struct iovec){address_of(now->number, now->used.from), bytes};
    }
    return ranges;
}

void kprof_memory_begin(kprof_memory *memory)
{
    const size_t count = keep_used(memory), ranges = plan_reads(memory, count);
    /* The kernel stops at the first range that it cannot copy. */
    const ssize_t got = ranges > 0 ? process_vm_readv(memory->pid, memory->parts, count, memory->ranges, ranges, 0) : 0;
    size_t left = got > 0 ? (size_t)got : 0;
    forget(memory);
    for (; memory->count < count && left >= memory->parts[memory->count].iov_len; memory->count++) {
        block *kept = &memory->blocks[memory->count];
        left -= memory->parts[memory->count].iov_len;
        kept->read = kept->used;
        kept->used = (span){BLOCK, 0};
        *slot_of(memory, kept->number) = (uint16_t)(memory->count + 1);
    }
}

/* The data of the last block, of which these bytes are used. */
static const char *use(kprof_memory *memory, span wanted)
{
    span *used = &memory->blocks[memory->last].used;
    used->from = wanted.from < used->from ? wanted.from : used->from;
    used->to = wanted.to > used->to ? wanted.to : used->to;
    return memory->data[memory->last];
}

/* The data of a block with these bytes read; NULL where there is no such memory. */
static const char *read_block(kprof_memory *memory, uintptr_t number, span wanted)
{
    block *found = &memory->blocks[memory->last];
    if (memory->last < memory->count && found->number == number && wanted.from >= found->read.from &&
        wanted.to <= found->read.to)
        return use(memory, wanted);
    uint16_t *slot = slot_of(memory, number);
    if (!*slot && memory->count == KPROF_MEMORY_BLOCKS_MAX) {
        forget(memory);
        slot = slot_of(memory, number);
    }
    const size_t i = *slot ? *slot - 1u : memory->count;
    found = &memory->blocks[i];
    if (!*slot || wanted.from < found->read.from || wanted.to > found->read.to) {
        const struct iovec local = {memory->data[i], BLOCK}, remote = {address_of(number, 0), BLOCK};
        if (process_vm_readv(memory->pid, &local, 1, &remote, 1, 0) != BLOCK)
            return NULL;
        if (!*slot)
            *found = (block){number, .used = {BLOCK, 0}};
        found->read = (span){0, BLOCK};
        memory->count += !*slot;
        *slot = (uint16_t)(i + 1);
    }
    memory->last = i;
    return use(memory, wanted);
}

bool kprof_memory_read(kprof_memory *memory, uintptr_t address, void *out, size_t bytes)
{
    char *to = out;
    if (bytes > UINTPTR_MAX - address)
        return false;
    while (bytes > 0) {
        const size_t offset = address % BLOCK, most = BLOCK - offset, part = bytes < most ? bytes : most;
        const char *data = read_block(memory, address / BLOCK, (span){(uint16_t)offset, (uint16_t)(offset + part)});
        if (!data)
            return false;
        memcpy(to, data + offset, part);
        to += part;
        address += part;
        bytes -= part;
    }
    return true;
}
