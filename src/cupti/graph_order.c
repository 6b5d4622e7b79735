/* Kahn's algorithm, and then one counting sort. A node's round says how often one has to go over all nodes, in the
 * order in which they are given, until everything that it depends on has been met. */
#include "cupti/graph_order.h"
#include "core/strbuf.h"

#include <stdint.h>

#define NO_NODE SIZE_MAX

typedef struct sorter {
    const kprof_graph_edges *graph;
    size_t *slots;      /* [slot_count], hash table by handle: a node's index plus 1; 0: free */
    size_t slot_count;  /* a power of two */
    size_t *from, *to;  /* [edge_count]: the ends of the edges as indices of nodes; NO_NODE: not one of the graph's */
    size_t *first;      /* [count + 2]: where a node's edges begin in `edges` */
    size_t *edges;      /* [edge_count]: indices of edges, by the node that they start at */
    size_t *awaited;    /* [count]: edges to the node that start at one which is not in the queue */
    size_t *round;      /* [count] */
    size_t *queue;      /* [count]: nodes that await nothing */
    size_t queue_count; /* so far */
} sorter;

static size_t *find_slot(const sorter *s, CUgraphNode handle)
{
    uint64_t key = (uintptr_t)handle >> 4;
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (s->slot_count - 1);
    while (s->slots[i] && s->graph->nodes[s->slots[i] - 1] != handle)
        i = (i + 1) & (s->slot_count - 1);
    return &s->slots[i];
}

static size_t find_node(const sorter *s, CUgraphNode handle)
{
    size_t found = *find_slot(s, handle);
    return found ? found - 1 : NO_NODE;
}

/* Handles become indices, and each node gets the list of the edges that start at it. */
static void list_edges(sorter *s)
{
    const kprof_graph_edges *g = s->graph;
    for (size_t i = 0; i < g->count; i++)
        *find_slot(s, g->nodes[i]) = i + 1;
    for (size_t e = 0; e < g->edge_count; e++) {
        s->from[e] = find_node(s, g->from[e]);
        s->to[e] = find_node(s, g->to[e]);
        if (s->to[e] == NO_NODE)
            continue;
        s->awaited[s->to[e]]++; /* for ever, if the node that it depends on is not known */
        if (s->from[e] != NO_NODE)
            s->first[s->from[e] + 2]++;
    }
    for (size_t i = 0; i < g->count; i++)
        s->first[i + 2] += s->first[i + 1];
    for (size_t e = 0; e < g->edge_count; e++)
        if (s->to[e] != NO_NODE && s->from[e] != NO_NODE)
            s->edges[s->first[s->from[e] + 1]++] = e;
}

static void follow_edges(sorter *s)
{
    for (size_t i = 0; i < s->graph->count; i++)
        if (s->awaited[i] == 0)
            s->queue[s->queue_count++] = i;
    for (size_t next = 0; next < s->queue_count; next++) {
        size_t node = s->queue[next];
        for (size_t at = s->first[node]; at < s->first[node + 1]; at++) {
            size_t to = s->to[s->edges[at]], round = s->round[node] + (to < node);
            if (s->round[to] < round)
                s->round[to] = round;
            if (--s->awaited[to] == 0)
                s->queue[s->queue_count++] = to;
        }
    }
}

/* By rounds, and within a round as the nodes are given. `starts`: [count + 1] zeros. */
static void sort(const sorter *s, size_t *starts, size_t *order)
{
    for (size_t i = 0; i < s->queue_count; i++)
        starts[s->round[s->queue[i]] + 1]++;
    for (size_t round = 0; round < s->graph->count; round++)
        starts[round + 1] += starts[round];
    for (size_t i = 0; i < s->graph->count; i++)
        if (s->awaited[i] == 0)
            order[starts[s->round[i]]++] = i;
}

bool kprof_graph_order(const kprof_graph_edges *graph, size_t *order, size_t *ordered)
{
    sorter s = {.graph = graph, .slot_count = 16};
    size_t count = graph->count, edge_count = graph->edge_count;
    while (s.slot_count < 2 * count)
        s.slot_count *= 2;
    KPROF_AUTO_FREE size_t *memory = kprof_calloc(s.slot_count + 3 * edge_count + 5 * count + 3, sizeof *memory);
    if (!memory)
        return false;
    s.slots = memory;
    s.from = s.slots + s.slot_count;
    s.to = s.from + edge_count;
    s.edges = s.to + edge_count;
    s.first = s.edges + edge_count;
    s.awaited = s.first + count + 2;
    s.round = s.awaited + count;
    s.queue = s.round + count;
    list_edges(&s);
    follow_edges(&s);
    sort(&s, s.queue + count, order);
    *ordered = s.queue_count;
    return true;
}
