/* Which metrics the range profiler can collect. CUPTI tells by taking or refusing a whole list of names, at about a
 * millisecond a call, so names are tried in groups and a refused group is halved. Answers are remembered. */
#include "cupti/host_private.h"

#include <stdlib.h>
#include <string.h>

/* A counter of the context that every chip has: NVLink and PCIe counters are taken alone, but not beside it. */
#define COMPANION "sm__cycles_elapsed.max"

typedef struct memo_entry {
    char *name;
    bool can;
} memo_entry;

struct kprof_name_memo {
    memo_entry *entries; /* open addressing; [capacity], a power of two */
    size_t count, capacity;
};

static size_t hash_name(const char *name)
{
    size_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static memo_entry *find_slot(const memo_entry *entries, size_t capacity, const char *name)
{
    size_t i = hash_name(name) & (capacity - 1);
    while (entries[i].name && strcmp(entries[i].name, name) != 0)
        i = (i + 1) & (capacity - 1);
    return (memo_entry *)&entries[i];
}

static bool grow_memo(kprof_name_memo *memo)
{
    size_t capacity = memo->capacity ? memo->capacity * 2 : 1024;
    memo_entry *entries = calloc(capacity, sizeof(*entries));
    if (!entries)
        return false;
    for (size_t i = 0; i < memo->capacity; i++) {
        if (memo->entries[i].name)
            *find_slot(entries, capacity, memo->entries[i].name) = memo->entries[i];
    }
    free(memo->entries);
    memo->entries = entries;
    memo->capacity = capacity;
    return true;
}

static void remember(kprof_host *host, const char *name, bool can)
{
    if (!host->memo)
        host->memo = calloc(1, sizeof(*host->memo));
    kprof_name_memo *memo = host->memo;
    if (!memo || (memo->count * 2 >= memo->capacity && !grow_memo(memo)))
        return; /* only forgotten: asked again, CUPTI answers again */
    memo_entry *slot = find_slot(memo->entries, memo->capacity, name);
    if (slot->name)
        return;
    char *copy = strdup(name);
    if (!copy)
        return;
    *slot = (memo_entry){copy, can};
    memo->count++;
}

static const memo_entry *recall(const kprof_host *host, const char *name)
{
    if (!host->memo || !host->memo->capacity)
        return NULL;
    const memo_entry *slot = find_slot(host->memo->entries, host->memo->capacity, name);
    return slot->name ? slot : NULL;
}

void kprof_name_memo_free(kprof_name_memo *memo)
{
    if (!memo)
        return;
    for (size_t i = 0; i < memo->capacity; i++)
        free(memo->entries[i].name);
    free(memo->entries);
    free(memo);
}

/* names[0] is the companion and is offered with every group. */
static bool takes(kprof_host *host, const char **names, size_t count)
{
    CUpti_Profiler_Host_Object *object;
    if (kprof_host_object_open(host, &object) != CUPTI_SUCCESS)
        return false;
    bool taken = kprof_host_object_add(host, object, names, count) == CUPTI_SUCCESS;
    kprof_host_object_close(host, object);
    return taken;
}

/* Halve until every name is known; `names` has room for the companion in front. Depth is the logarithm of the count. */
static void check_group(kprof_host *host, const char **names, size_t count)
{
    const char *saved = names[-1];
    names[-1] = COMPANION;
    bool taken = takes(host, names - 1, count + 1);
    names[-1] = saved;
    if (taken || count == 1) {
        for (size_t i = 0; i < count; i++)
            remember(host, names[i], taken);
        return;
    }
    check_group(host, names, count / 2);
    check_group(host, names + count / 2, count - count / 2);
}

/* A base name alone has properties but is no value. */
static bool may_exist(kprof_host *host, const char *name)
{
    return name[kprof_metric_base_length(name)] && kprof_host_has_metric(host, name);
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    const char **group = calloc(names->count + 1, sizeof(*group));
    if (!group)
        return KPROF_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (recall(host, names->items[i]))
            continue;
        if (may_exist(host, names->items[i]))
            group[1 + count++] = names->items[i];
        else
            remember(host, names->items[i], false);
    }
    if (count > 0)
        check_group(host, group + 1, count);
    free(group);
    return KPROF_OK;
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    const memo_entry *known = recall(host, name);
    if (known)
        return known->can;
    char *items[] = {(char *)name};
    kprof_strlist one = {items, 1, 1};
    if (kprof_host_check(host, &one) != KPROF_OK)
        return false;
    known = recall(host, name);
    return known && known->can;
}
