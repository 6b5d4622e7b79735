/* Saves, compares and puts back device memory in blocks, and repeats transfers. make_blocks.sh turns this file into
 * blocks.ptx, which is committed, so that building kprof needs no CUDA compiler. A thread block takes one block of
 * memory after another. */

struct block {
    unsigned long long address;
    unsigned long long backing;    /* where its content is kept; 0: it is `pattern`, over and over */
    unsigned long long pattern[2]; /* the first 16 bytes */
    unsigned bytes;
    unsigned state; /* bits below */
};

enum { UNIFORM = 1, CHANGED = 2, LOST = 4 };

/* What kprof_compare does with what differs: looks at it, puts back what is kept, or does that only in the groups of
 * GROUP blocks in which something has differed before. */
enum { LOOK, PUT_BACK, PUT_BACK_IN_GROUPS };
#define GROUP 256

typedef unsigned long long word;

__device__ static bool in_words(const block &b)
{
    return ((b.address | b.backing | b.bytes) & 15) == 0;
}

/* Finds the blocks that repeat their first 16 bytes: of these only the pattern is kept. */
extern "C" __global__ void __launch_bounds__(256) kprof_scan(block *blocks, unsigned count)
{
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        const block b = blocks[i];
        bool same = in_words(b);
        ulonglong2 first = make_ulonglong2(0, 0);
        if (same) {
            const ulonglong2 *words = (const ulonglong2 *)b.address;
            first = words[0];
            for (unsigned w = threadIdx.x; w < b.bytes / 16; w += blockDim.x) {
                ulonglong2 v = words[w];
                same = same && v.x == first.x && v.y == first.y;
            }
        }
        same = __syncthreads_and(same);
        if (threadIdx.x == 0) {
            blocks[i].pattern[0] = first.x;
            blocks[i].pattern[1] = first.y;
            blocks[i].state = same ? UNIFORM : 0;
        }
    }
}

/* Copies the content of blocks to where it is kept. */
extern "C" __global__ void __launch_bounds__(256) kprof_keep(const block *blocks, unsigned count)
{
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        const block b = blocks[i];
        if (!b.backing)
            continue;
        if (in_words(b)) {
            const ulonglong2 *from = (const ulonglong2 *)b.address;
            ulonglong2 *to = (ulonglong2 *)b.backing;
            for (unsigned w = threadIdx.x; w < b.bytes / 16; w += blockDim.x)
                to[w] = from[w];
        } else {
            const unsigned char *from = (const unsigned char *)b.address;
            unsigned char *to = (unsigned char *)b.backing;
            for (unsigned w = threadIdx.x; w < b.bytes; w += blockDim.x)
                to[w] = from[w];
        }
    }
}

/* Compares blocks with what is kept of them, and marks those that differ and, unless `groups` is NULL, their groups.
 * What is equal is not written, so that memory that may only be read can be among the blocks. */
extern "C" __global__ void __launch_bounds__(256)
    kprof_compare(block *blocks, unsigned count, unsigned repair, unsigned char *groups)
{
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        if (repair == PUT_BACK_IN_GROUPS && !groups[i / GROUP])
            continue;
        const block b = blocks[i];
        int changed = 0;
        if (in_words(b)) {
            ulonglong2 *here = (ulonglong2 *)b.address;
            const ulonglong2 *kept = (const ulonglong2 *)b.backing;
            ulonglong2 pattern = make_ulonglong2(b.pattern[0], b.pattern[1]);
            for (unsigned w = threadIdx.x; w < b.bytes / 16; w += blockDim.x) {
                ulonglong2 v = here[w], k = kept ? kept[w] : pattern;
                if (v.x != k.x || v.y != k.y) {
                    changed = 1;
                    if (repair)
                        here[w] = k;
                }
            }
        } else if (b.backing) {
            unsigned char *here = (unsigned char *)b.address;
            const unsigned char *kept = (const unsigned char *)b.backing;
            for (unsigned w = threadIdx.x; w < b.bytes; w += blockDim.x)
                if (here[w] != kept[w]) {
                    changed = 1;
                    if (repair)
                        here[w] = kept[w];
                }
        }
        changed = __syncthreads_or(changed);
        if (threadIdx.x == 0 && changed) {
            blocks[i].state = b.state | CHANGED;
            if (groups)
                groups[i / GROUP] = 1;
        }
    }
}

/* Keeps what has changed in blocks since they were kept, and marks those for which there is no space. */
extern "C" __global__ void __launch_bounds__(256) kprof_follow(block *blocks, unsigned count)
{
    for (unsigned i = blockIdx.x; i < count; i += gridDim.x) {
        const block b = blocks[i];
        int lost = 0;
        if (in_words(b)) {
            const ulonglong2 *here = (const ulonglong2 *)b.address;
            ulonglong2 *kept = (ulonglong2 *)b.backing;
            for (unsigned w = threadIdx.x; w < b.bytes / 16; w += blockDim.x) {
                ulonglong2 v = here[w];
                if (kept)
                    kept[w] = v;
                else
                    lost = lost || v.x != b.pattern[0] || v.y != b.pattern[1];
            }
        } else if (b.backing) {
            const unsigned char *here = (const unsigned char *)b.address;
            unsigned char *kept = (unsigned char *)b.backing;
            for (unsigned w = threadIdx.x; w < b.bytes; w += blockDim.x)
                kept[w] = here[w];
        }
        lost = __syncthreads_or(lost);
        if (threadIdx.x == 0 && lost)
            blocks[i].state = b.state | LOST;
    }
}

/* Repeats a copy within the device: `height` rows of `width` bytes. The driver's own copies refuse memory that a pool
 * has taken back meanwhile. */
extern "C" __global__ void __launch_bounds__(256)
    kprof_copy(word to, word to_pitch, word from, word from_pitch, word width, word height)
{
    const word thread = blockIdx.x * (word)blockDim.x + threadIdx.x, threads = gridDim.x * (word)blockDim.x;
    const word words = ((to | to_pitch | from | from_pitch) & 15) == 0 ? width / 16 : 0, rest = width - 16 * words;
    for (word i = thread; i < words * height; i += threads) {
        const word row = i / words, at = i % words * 16;
        *(ulonglong2 *)(to + row * to_pitch + at) = *(const ulonglong2 *)(from + row * from_pitch + at);
    }
    for (word i = thread; i < rest * height; i += threads) {
        const word row = i / rest, at = 16 * words + i % rest;
        *(unsigned char *)(to + row * to_pitch + at) = *(const unsigned char *)(from + row * from_pitch + at);
    }
}

/* Repeats a set: `height` rows of `width` elements of 1, 2 or 4 bytes, `pitch` bytes apart. */
extern "C" __global__ void __launch_bounds__(256)
    kprof_set(word to, word pitch, unsigned value, unsigned element_bytes, word width, word height)
{
    const word thread = blockIdx.x * (word)blockDim.x + threadIdx.x, threads = gridDim.x * (word)blockDim.x;
    for (word i = thread; i < width * height; i += threads) {
        word at = to + i / width * pitch + i % width * element_bytes;
        if (element_bytes == 1)
            *(unsigned char *)at = (unsigned char)value;
        else if (element_bytes == 2)
            *(unsigned short *)at = (unsigned short)value;
        else
            *(unsigned *)at = value;
    }
}
