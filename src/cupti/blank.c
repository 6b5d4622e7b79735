/* Finds the blocks by their size alone: where bytes are the same as those one block further on. */
#include "cupti/blank.h"
#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

struct kprof_blank {
    size_t size, range_bytes;
    size_t first;     /* offset of the blocks */
    size_t shifted;   /* more blocks that a range may reach into, since the first may begin later than `first` */
    size_t end;       /* offset of what follows them */
    size_t ranges;    /* blocks */
    uint8_t *outside; /* [first + size - end]: head and end */
    uint8_t *block;   /* [range_bytes] */
};

static bool is_block(const kprof_blank *blank, const uint8_t *image, size_t range)
{
    return memcmp(image + blank->first + range * blank->range_bytes, blank->block, blank->range_bytes) == 0;
}

/* Look at a few of the blocks from `from` on: looking at all takes as long as making them anew. */
static bool are_blank(const kprof_blank *blank, const uint8_t *image, size_t from)
{
    size_t left = blank->ranges - from;
    return left == 0 || (is_block(blank, image, from) && is_block(blank, image, from + left / 2) &&
                         is_block(blank, image, blank->ranges - 1));
}

static bool copy_parts(kprof_blank *blank, const uint8_t *image)
{
    size_t end_bytes = blank->size - blank->end;
    blank->outside = malloc(blank->first + end_bytes + 1);
    blank->block = malloc(blank->range_bytes);
    if (!blank->outside || !blank->block)
        return false;
    memcpy(blank->outside, image, blank->first);
    memcpy(blank->outside + blank->first, image + blank->end, end_bytes);
    memcpy(blank->block, image + blank->first, blank->range_bytes);
    return true;
}

kprof_blank *kprof_blank_keep(const uint8_t *image, size_t size, size_t ranges, size_t range_bytes)
{
    if (ranges == 0 || range_bytes == 0 || size / range_bytes < ranges)
        return NULL;
    size_t rest = size - ranges * range_bytes;
    if (ranges > 1 && rest > (ranges - 1) * range_bytes)
        return NULL;
    kprof_blank *blank = calloc(1, sizeof *blank);
    if (!blank)
        return NULL;
    blank->size = size;
    blank->ranges = ranges;
    blank->range_bytes = range_bytes;
    /* Head and end have `rest` bytes together, so this place is in a block. Go back as long as bytes are the same as
     * one block further on. The end of the head may look like the end of a block, and then counts as one. */
    blank->first = ranges > 1 ? rest : 0;
    while (blank->first > 0 && image[blank->first - 1] == image[blank->first - 1 + range_bytes])
        blank->first--;
    blank->shifted = (rest - blank->first + range_bytes - 1) / range_bytes;
    blank->end = blank->first + ranges * range_bytes;
    if (copy_parts(blank, image) && are_blank(blank, image, 0))
        return blank;
    kprof_blank_free(blank);
    return NULL;
}

bool kprof_blank_restore(const kprof_blank *blank, uint8_t *image, size_t used)
{
    if (used > blank->ranges)
        return false;
    used = blank->ranges - used > blank->shifted ? used + blank->shifted : blank->ranges;
    if (!are_blank(blank, image, used))
        return false;
    memcpy(image, blank->outside, blank->first);
    memcpy(image + blank->end, blank->outside + blank->first, blank->size - blank->end);
    for (size_t i = 0; i < used; i++)
        memcpy(image + blank->first + i * blank->range_bytes, blank->block, blank->range_bytes);
    return true;
}

void kprof_blank_free(kprof_blank *blank)
{
    if (!blank)
        return;
    KPROF_FREE(blank->outside, blank->block, blank);
}
