/* A list: parts that have ended stay in it until all processes have followed. */
#include "cli/open_parts.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

typedef struct kprof_open_part {
    kprof_part part;    /* its process ids are owned */
    char *path;         /* of its report; NULL: none is asked for */
    bool overwrites;    /* a file of that name */
    const void *closer; /* NULL: it is open */
} open_part;

static void copy_pids(const kprof_pids *from, kprof_pids *out)
{
    *out = (kprof_pids){NULL, 0};
    for (size_t i = 0; i < from->count; i++)
        kprof_pids_add(out, from->items[i]);
}

static void set_path(open_part *part, const kprof_options *options)
{
    free(part->path);
    part->path = options->export_path ? kprof_strdup(options->export_path) : NULL;
    part->overwrites = options->force_overwrite;
}

void kprof_open_parts_begin(kprof_open_parts *open, const kprof_part *part, const kprof_options *options)
{
    open_part *added = KPROF_ADD(open->items, open->count);
    *added = (open_part){.part = *part};
    copy_pids(&part->pids, &added->part.pids);
    set_path(added, options);
}

void kprof_open_parts_forget(kprof_open_parts *open, uint32_t turn)
{
    size_t left = 0;
    for (size_t i = 0; i < open->count; i++) {
        open_part *part = &open->items[i];
        if (part->part.first_turn == turn)
            KPROF_FREE(part->path, part->part.pids.items);
        else
            open->items[left++] = *part;
    }
    open->count = left;
}

bool kprof_open_parts_promise(const kprof_open_parts *open, const char *path)
{
    bool found = false;
    for (size_t i = 0; i < open->count && !found; i++)
        found = open->items[i].path && strcmp(open->items[i].path, path) == 0;
    return found;
}

/* Are all processes of a part among these? No ids stand for all processes. */
static bool is_within(const kprof_pids *part, const kprof_pids *whom)
{
    bool are_within = whom->count == 0 || part->count > 0;
    for (size_t i = 0; i < part->count && are_within && whom->count > 0; i++)
        are_within = kprof_pids_have(whom, part->items[i]);
    return are_within;
}

static bool overlaps(const kprof_pids *part, const kprof_pids *whom)
{
    bool found = part->count == 0 || whom->count == 0;
    for (size_t i = 0; i < part->count && !found; i++)
        found = kprof_pids_have(whom, part->items[i]);
    return found;
}

void kprof_open_parts_end(kprof_open_parts *open, const kprof_pids *whom, const void *closer)
{
    for (size_t i = 0; i < open->count; i++)
        if (!open->items[i].closer && is_within(&open->items[i].part.pids, whom))
            open->items[i].closer = closer;
}

kprof_status kprof_open_parts_name(kprof_open_parts *open, const kprof_pids *whom, const kprof_options *options)
{
    open_part *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < open->count; i++) {
        if (open->items[i].closer || !overlaps(&open->items[i].part.pids, whom))
            continue;
        found = &open->items[i];
        count++;
    }
    if (count == 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl stop -o: nothing was started");
    if (count > 1)
        return kprof_fail(KPROF_USAGE,
                          "kprof ctl stop -o: %zu starts would end; name their reports by kprof ctl start -o", count);
    const kprof_part part = {found->part.plan, found->part.first_turn, *whom};
    if (is_within(&found->part.pids, whom))
        set_path(found, options);
    else
        kprof_open_parts_begin(open, &part, options);
    return KPROF_OK;
}

static kprof_status make(const kprof_open_parts *open, const open_part *part, kprof_strbuf *out)
{
    const kprof_options wanted = {.export_path = part->path, .force_overwrite = part->overwrites};
    KPROF_AUTO_FREE char *path = NULL;
    kprof_status status = part->path ? kprof_parts_make(open->parts, &part->part, &wanted, &path) : KPROF_OK;
    if (path && out)
        kprof_strbuf_printf(out, "report %s\n", path);
    else if (path)
        kprof_log(KPROF_LOG_INFO, "report: %s", path);
    return status;
}

kprof_status kprof_open_parts_make(kprof_open_parts *open, const void *closer, kprof_strbuf *out)
{
    kprof_status result = KPROF_OK;
    size_t left = 0;
    for (size_t i = 0; i < open->count; i++) {
        open_part *part = &open->items[i];
        if (part->closer != closer) {
            open->items[left++] = *part;
            continue;
        }
        kprof_status status = make(open, part, out);
        result = status == KPROF_OK ? result : status;
        open->lost = part->part.plan > 0 && open->lost == KPROF_OK ? status : open->lost;
        KPROF_FREE(part->path, part->part.pids.items);
    }
    open->count = left;
    if (left == 0) {
        free(open->items);
        open->items = NULL;
    }
    return result;
}
