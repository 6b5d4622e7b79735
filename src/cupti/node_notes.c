/* A tree by the nodes' handles: programs make graphs of many thousand nodes, and end them in any order. */
#include "cupti/node_notes.h"

#include "core/hold.h"
#include "core/strbuf.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>

typedef struct note {
    const void *node;
    uint32_t number;
} note;

static struct {
    pthread_mutex_t mutex;
    void *root;
    size_t count;
} notes = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int by_node(const void *a, const void *b)
{
    const uintptr_t left = (uintptr_t)((const note *)a)->node, right = (uintptr_t)((const note *)b)->node;
    return KPROF_COMPARE(left, right);
}

static void forget(const note *wanted)
{
    note **found = tfind(wanted, &notes.root, by_node);
    note *gone = found ? *found : NULL;
    if (!gone)
        return;
    tdelete(wanted, &notes.root, by_node);
    notes.count--;
    free(gone);
}

static void keep(const note *wanted)
{
    note **found = tfind(wanted, &notes.root, by_node);
    note *added = found || notes.count == KPROF_NODE_NOTES_MAX ? NULL : malloc(sizeof *added);
    if (found)
        (*found)->number = wanted->number;
    if (!added)
        return;
    *added = *wanted;
    if (tsearch(added, &notes.root, by_node))
        notes.count++;
    else
        free(added);
}

void kprof_node_notes_set(const void *node, uint32_t number)
{
    const note wanted = {node, number};
    KPROF_HOLD(notes.mutex);
    if (number > 0)
        keep(&wanted);
    else
        forget(&wanted);
}

uint32_t kprof_node_notes_find(const void *node)
{
    const note wanted = {node, 0};
    KPROF_HOLD(notes.mutex);
    note **found = tfind(&wanted, &notes.root, by_node);
    return found ? (*found)->number : 0;
}
