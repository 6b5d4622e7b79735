/* Numbers are written seven bits to a byte, the lowest first; the top bit says that there are more. A difference has
 * its sign in the lowest bit. Arithmetic is modulo 2^64, so any number survives. */
#include "spool/activities.h"

#include <string.h>

#define MOST_BYTES 10 /* of a number */

static size_t put_number(uint8_t *out, uint64_t value)
{
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        out[length++] = (uint8_t)(value | 0x80);
    out[length++] = (uint8_t)value;
    return length;
}

static bool get_number(kprof_activity_block *block, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && block->left > 0; shift += 7) {
        const uint8_t byte = *block->data++;
        block->left--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return shift < 63 || byte <= 1;
    }
    return false;
}

void kprof_activity_encode(kprof_activity_history *history, const kprof_activity *activity, kprof_strbuf *out)
{
    uint8_t bytes[1 + MOST_BYTES + KPROF_ACTIVITY_FIELDS_MAX * MOST_BYTES];
    const size_t count = kprof_activity_field_count(activity->kind);
    int64_t *last = history->last[activity->kind];
    uint64_t changed = 0;
    for (size_t i = 0; i < count; i++)
        changed |= (uint64_t)(activity->fields[i] != last[i]) << i;
    bytes[0] = (uint8_t)activity->kind;
    size_t length = 1 + put_number(bytes + 1, changed);
    for (size_t i = 0; i < count; i++) {
        const uint64_t difference = (uint64_t)activity->fields[i] - (uint64_t)last[i];
        if (changed >> i & 1)
            length += put_number(bytes + length, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
    }
    memcpy(last, activity->fields, count * sizeof *last);
    kprof_strbuf_append(out, bytes, length);
}

/* Nothing can be read behind what is no activity. */
static bool fail(kprof_activity_block *block)
{
    block->left = 0;
    block->failed = true;
    return false;
}

bool kprof_activity_decode(kprof_activity_block *block, kprof_activity *out)
{
    uint64_t changed, difference;
    if (block->left == 0)
        return false;
    const unsigned kind = *block->data;
    const size_t count = kprof_activity_field_count(kind);
    if (count == 0)
        return fail(block);
    block->data++;
    block->left--;
    if (!get_number(block, &changed) || changed >> count)
        return fail(block);
    int64_t *last = block->history.last[kind];
    for (size_t i = 0; i < count; i++) {
        if (!(changed >> i & 1))
            continue;
        if (!get_number(block, &difference))
            return fail(block);
        last[i] = (int64_t)((uint64_t)last[i] + (difference >> 1 ^ (difference & 1 ? UINT64_MAX : 0)));
    }
    *out = (kprof_activity){.kind = (kprof_activity_kind)kind};
    memcpy(out->fields, last, count * sizeof *last);
    return true;
}
