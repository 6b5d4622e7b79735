/* Follows the driver calls that make and change executable CUDA graphs, and tells what a graph does, node by node. */
#pragma once

#include "cupti/driver_call.h"

#include <cupti.h>

/* Note what a call, which succeeded, did to a graph that can be launched; other calls are ignored. Thread-safe. */
void kprof_graphs_note(CUpti_CallbackId id, const void *parameters);
/* The kernels, sets and copies of a graph launch, in an order that keeps their dependencies, as calls in its context
 * and stream. Valid until the graph is changed or destroyed. NULL when it is not known what the graph does, or it does
 * something that no single call can repeat: `*why` is the reason, NULL where the graph launches no kernel. */
const kprof_graph_call *kprof_graphs_find(const kprof_call *launch, size_t *count, const char **why);

/* One of the nodes that do something to memory of the device, as the call that would do the same by itself. */
typedef bool kprof_graph_visitor(const kprof_call *node, void *user);

/* Visit the nodes of a graph launch that are known, whether they can be repeated or not. False once the visitor is. */
bool kprof_graphs_visit(const kprof_call *launch, kprof_graph_visitor *visit, void *user);
typedef struct kprof_graph_identity {
    uint32_t number; /* that graphs of the same kernels have in common; 0: what the graph does is not known */
    size_t kernels;
    bool launches_none; /* no kernel, and nothing that may launch one */
    bool changed;       /* its kernels may be others than at the call before */
} kprof_graph_identity;

kprof_graph_identity kprof_graphs_identify(const kprof_call *launch);
/* Return why the executable graph must not be launched again, whatever its kernels do; NULL when it may. `*waits`: it
 * may wait for the host, for events, or for something unknown. The text is a literal. */
const char *kprof_graphs_obstacle(const kprof_call *launch, bool *waits);
