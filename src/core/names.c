/* Hash map with linear probing, at most half full. */
#include "core/names.h"

#include "core/bytes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct kprof_name_slot {
    const char *name; /* NULL: free */
    size_t number;
};

static struct kprof_name_slot *find_slot(const kprof_names *names, const char *name)
{
    uint64_t h = kprof_hash(KPROF_HASH_START, name, strlen(name));
    size_t i = (size_t)(h ^ (h >> 32)) & (names->capacity - 1);
    while (names->slots[i].name && strcmp(names->slots[i].name, name) != 0)
        i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

static bool grow(kprof_names *names)
{
    kprof_names bigger = *names;
    bigger.capacity = names->capacity ? names->capacity * 2 : 64;
    bigger.slots = names->pool ? kprof_pool_calloc(names->pool, bigger.capacity, sizeof *bigger.slots)
                               : kprof_calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].name)
            *find_slot(&bigger, names->slots[i].name) = names->slots[i];
    if (!names->pool)
        free(names->slots);
    *names = bigger;
    return true;
}

bool kprof_names_add(kprof_names *names, const char *name, size_t number)
{
    if (names->count * 2 >= names->capacity && !grow(names))
        return false;
    struct kprof_name_slot *slot = find_slot(names, name);
    if (slot->name)
        return true;
    *slot = (struct kprof_name_slot){name, number};
    names->count++;
    return true;
}

bool kprof_names_keep(kprof_names *names, const char *name, size_t number)
{
    kprof_strlist *copies = &names->copies;
    if (kprof_names_find(names, name) != KPROF_NAMES_NONE)
        return true;
    if (names->pool)
        *KPROF_POOL_ADD(names->pool, copies->items, copies->count) = kprof_pool_strdup(names->pool, name);
    else if (!kprof_strlist_add(copies, name))
        return false;
    return kprof_names_add(names, copies->items[copies->count - 1], number);
}

size_t kprof_names_find(const kprof_names *names, const char *name)
{
    if (names->capacity == 0)
        return KPROF_NAMES_NONE;
    const struct kprof_name_slot *slot = find_slot(names, name);
    return slot->name ? slot->number : KPROF_NAMES_NONE;
}

bool kprof_names_number(kprof_names *names, const char *name, size_t *number)
{
    *number = kprof_names_find(names, name);
    if (*number != KPROF_NAMES_NONE)
        return false;
    *number = names->count;
    return kprof_names_keep(names, name, *number);
}

void kprof_names_free(kprof_names *names)
{
    free(names->slots);
    kprof_strlist_free(&names->copies);
    *names = (kprof_names){0};
}
