/* What instantiated CUDA graphs do, node by node, known from the driver calls that make and change them. */
#ifndef KPROF_CUPTI_GRAPHS_H
#define KPROF_CUPTI_GRAPHS_H

#include "cupti/target.h"

#include <cupti.h>

/* Note what a call, which succeeded, did to a graph that can be launched; other calls are ignored. Thread-safe. */
void kprof_graphs_note(CUpti_CallbackId id, const void *parameters);
/* The kernels, sets and copies of a graph launch, in an order that keeps their dependencies, as calls in `context` and
 * in the launch's stream. Valid until the graph is changed or destroyed. NULL, with `*why` set, when it is not known
 * what the graph does, or it does something that no single call can repeat. */
const kprof_graph_call *kprof_graphs_find(const kprof_call *launch, size_t *count, const char **why);

#endif
