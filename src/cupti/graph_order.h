/* Puts the nodes of a graph into an order where they can be repeated one after the other. */
#pragma once

#include <cuda.h>
#include <stdbool.h>

/* A graph as the driver tells it; the arrays are borrowed. */
typedef struct kprof_graph_edges {
    const CUgraphNode *nodes;     /* [count] */
    const CUgraphNode *from, *to; /* [edge_count]: `from` runs before `to` */
    size_t count, edge_count;
} kprof_graph_edges;

/* Write the indices of the nodes to order[count], each after all that it depends on, and their number to *ordered: it
 * is less than `count` when dependencies go round. Nodes that do not depend on each other stay in the order in which
 * they are given, as far as that takes no further round over all nodes. The time is linear in nodes and edges. False
 * when there is no memory. */
bool kprof_graph_order(const kprof_graph_edges *graph, size_t *order, size_t *ordered);
