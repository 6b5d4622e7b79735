/* Room that is left in passes, or by the limits, goes to single names. */
#include "metricset/limit_private.h"

#include <stdlib.h>

/* The first `most` names that are not kept, in the queue's order: borrowed. Caller frees the items. */
static bool list_left_out(const limiter *l, size_t most, kprof_strlist *out)
{
    const kprof_strlist *names = &l->queue->names;
    *out = (kprof_strlist){.items = calloc(names->count + 1, sizeof(*out->items))};
    for (size_t i = 0; out->items && i < names->count && out->count < most; i++) {
        if (!l->kept[i])
            out->items[out->count++] = names->items[i];
    }
    return out->items != NULL;
}

/* The wanted are names of the queue, in its order. */
static void mark_found(limiter *l, const kprof_fill *fill, bool kept)
{
    const kprof_strlist *names = &l->queue->names;
    for (size_t i = 0, next = 0; i < names->count && next < fill->wanted->count; i++) {
        if (names->items[i] == fill->wanted->items[next] && fill->found[next++])
            l->kept[i] = kept;
    }
}

/* Keep what the image of `tried` has beside what is kept already, if that keeps the limits. */
static kprof_status take_filled(limiter *l, const kprof_fill *fill, candidate *tried, bool *fits)
{
    mark_found(l, fill, true);
    kprof_status status = kprof_limiter_list(l, 0, 0, &tried->names) ? KPROF_OK : KPROF_NO_MEMORY;
    if (status == KPROF_OK)
        status = kprof_limiter_allows(l, tried, fits);
    if (status == KPROF_OK && *fits) {
        kprof_config_image_free(&l->image);
        l->image = tried->image;
        tried->image = (kprof_config_image){0};
    } else
        mark_found(l, fill, false);
    return status;
}

/* Passes that filling may add or make dearer, at once. */
typedef struct fill_step {
    size_t new_passes, sm_passes, slow_passes;
} fill_step;

/* Keep what of the first `count` names that are left out goes into the passes, if all of it keeps the limits. Where
 * filling fails there is nothing to keep. */
static kprof_status fill_with(limiter *l, const fill_step *step, size_t count, bool *fits)
{
    kprof_strlist wanted;
    candidate tried = {0};
    kprof_fill fill = {&wanted, step->new_passes, step->sm_passes, step->slow_passes, NULL};
    *fits = false;
    fill.found = calloc(l->queue->names.count + 1, sizeof(*fill.found));
    kprof_status status = list_left_out(l, count, &wanted) && fill.found ? KPROF_OK : KPROF_NO_MEMORY;
    if (status == KPROF_OK && kprof_host_fill(l->host, &fill, &l->image, &tried.image) == KPROF_OK)
        status = take_filled(l, &fill, &tried, fits);
    kprof_config_image_free(&tried.image);
    free(tried.names.items);
    free(wanted.items);
    free(fill.found);
    return status;
}

/* Where all that goes in is too much, keep as much of its beginning as fits: of what is left out, trying `low` names
 * adds nothing, and `high` are too many. */
static kprof_status fill_in_part(limiter *l, const fill_step *step, size_t high)
{
    kprof_status status = KPROF_OK;
    for (size_t low = 0; high - low > 1 && status == KPROF_OK;) {
        size_t middle = low + (high - low) / 2, before = kprof_limiter_count(l);
        bool fits;
        status = fill_with(l, step, middle, &fits);
        size_t added = kprof_limiter_count(l) - before;
        low = fits ? middle - added : low;
        high = fits ? high - added : middle;
    }
    return status;
}

/* Where a further pass is too much, it is for its own price nearly always. */
static kprof_status fill_passes(limiter *l, const fill_step *step, bool *fits)
{
    size_t count = l->queue->names.count - kprof_limiter_count(l);
    kprof_status status = fill_with(l, step, count, fits);
    return status == KPROF_OK && !*fits && step->new_passes == 0 ? fill_in_part(l, step, count) : status;
}

/* A step again and again, as long as it finds something. */
static kprof_status fill_repeatedly(limiter *l, const fill_step *step)
{
    kprof_status status = KPROF_OK;
    bool fits = true;
    for (size_t before = SIZE_MAX; status == KPROF_OK && fits && kprof_limiter_count(l) != before;) {
        before = kprof_limiter_count(l);
        status = before < l->queue->names.count ? fill_passes(l, step, &fits) : KPROF_OK;
    }
    return status;
}

/* What costs little before what costs more. */
kprof_status kprof_limiter_fill(limiter *l)
{
    static const fill_step steps[] = {{0, 0, 0}, {0, 1, 0}, {0, 1, 1}, {1, 1, 1}, {1, 1, 0}, {1, 0, 0}};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == KPROF_OK; i++)
        status = fill_repeatedly(l, &steps[i]);
    return status;
}
