/* A list of instantiated graphs. kprof copies the parameters of nodes when a graph is instantiated, since the graph
 * that it was made of may go, and changes the copies with each call that changes a node. */
#include "cupti/graphs.h"

#include "core/hold.h"
#include "cupti/arguments.h"
#include "cupti/calls.h"
#include "cupti/driver.h"
#include "cupti/graph_order.h"
#include "cupti/node_notes.h"
#include "cupti/place.h"
#include "host/load.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ID(name)    CUPTI_DRIVER_TRACE_CBID_##name
#define MAX_NESTING 8
#define NO_MEMORY   "there was no memory to note what the graph does"

#define UPDATABLE     "kernels may change its nodes"
#define UNKNOWN_GRAPH "it is not known what the graph does"

/* Attributes of kernel nodes that a launch takes, too. */
static const CUlaunchAttributeID copied_attributes[] = {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
};
enum { COPIED_ATTRIBUTES = COUNT_OF(copied_attributes) };

typedef struct node {
    struct node *next; /* in the order of execution */
    CUgraphNode handle;
    CUgraphNode parent; /* of a node of a child graph: the node that stands for that graph; else NULL */
    uint64_t id;
    uint32_t note; /* of kprof_node_notes_set */
    bool disabled, does_nothing;
    bool may_wait;              /* for the host, for events, or for what is not known */
    bool may_launch;            /* a kernel: it is one, or decides on the GPU what to launch */
    bool is_updatable;          /* by kernels, whatever the host changes */
    const char *obstacle;       /* why no single call can do the same; NULL: one can */
    const char *lasting;        /* what the node does outside of device memory */
    bool reads_pageable;        /* memory of the host */
    unsigned traits;            /* kprof_node_trait bits, in the last launch */
    CUpti_CallbackId callback;  /* of the call that would do the same by itself; 0: none would */
    kprof_decoded_call decoded; /* that call */
    /* A kernel: */
    CUlaunchConfig config;
    CUlaunchAttribute attributes[COPIED_ATTRIBUTES];
    void *extra[5];
    kprof_arguments arguments;
    CUcontext context; /* given with a CUkernel; NULL: that of the launch */
    char *name;        /* mangled, owned */
    uint32_t hash;     /* of the name */
} node;

typedef struct graph {
    struct graph *next;
    CUgraphExec exec;
    node *first, **end;
    node *to_change;    /* behind the node that was changed last; NULL: any */
    CUgraphNode parent; /* of nodes that are read now */
    const char *obstacle;
    bool changed;  /* since it was identified */
    bool launched; /* in `stream` last */
    void *stream;
    pthread_t thread;        /* which may have a default stream of its own */
    kprof_graph_call *calls; /* [capacity], owned: of the last launch */
    size_t capacity;
} graph;

static struct {
    pthread_mutex_t mutex;
    graph *first;
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const kprof_driver_api *driver;

/* FNV-1a, going on from the hash of what came before; 0: nothing did. */
static uint32_t hash_bytes(uint32_t before, const void *bytes, size_t count)
{
    uint32_t hash = before ? before : 2166136261u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return hash;
}

/* Kernels */

/* The call that launches it, by what has been copied. */
static void describe_launch(node *n)
{
    kprof_arguments *a = &n->arguments;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, a->buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &a->size_bytes,
                     CU_LAUNCH_PARAM_END};
    memcpy(n->extra, extra, sizeof extra);
    n->decoded.launch = (kprof_given_launch){.function = n->decoded.launch.function,
                                             .has_arguments = true,
                                             .extra = a->size_bytes > 0 ? n->extra : NULL,
                                             .config = &n->config};
    kprof_launch_read_config(&n->config, &n->decoded.launch);
}

static void set_kernel(node *n, const CUDA_KERNEL_NODE_PARAMS *p)
{
    const char *name = NULL;
    unsigned attributes = n->config.numAttrs;
    n->callback = ID(cuLaunchKernelEx);
    n->config = (CUlaunchConfig){p->gridDimX,  p->gridDimY,       p->gridDimZ, p->blockDimX,  p->blockDimY,
                                 p->blockDimZ, p->sharedMemBytes, NULL,        n->attributes, attributes};
    n->context = p->func ? NULL : p->ctx;
    n->decoded.launch.function = p->func ? p->func : (CUfunction)p->kern;
    kprof_given_arguments given = {n->decoded.launch.function, p->kernelParams, p->extra};
    n->obstacle = !kprof_arguments_copy(driver, &given, &n->arguments)
                      ? "the arguments of one of its kernels cannot be copied"
                  : n->is_updatable ? UPDATABLE
                                    : NULL;
    describe_launch(n);
    CUresult result = p->func ? driver->cuFuncGetName_(&name, p->func) : driver->cuKernelGetName_(&name, p->kern);
    free(n->name);
    n->name = strdup(result == CUDA_SUCCESS && name ? name : "(unnamed kernel)");
    n->hash = n->name ? hash_bytes(0, n->name, strlen(n->name)) : 0;
    if (!n->name)
        n->obstacle = NO_MEMORY;
}

static bool is_set(const CUlaunchAttribute *a)
{
    return a->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE         ? a->value.cooperative != 0
           : a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? a->value.clusterDim.x > 0
           : a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
               ? a->value.clusterSchedulingPolicyPreference != CU_CLUSTER_SCHEDULING_POLICY_DEFAULT
               : a->value.sharedMemCarveout != (unsigned)CU_SHAREDMEM_CARVEOUT_DEFAULT &&
                     a->value.sharedMemCarveout > 0;
}

static void read_attributes(node *n)
{
    CUlaunchAttributeValue value;
    n->config.numAttrs = 0;
    for (size_t i = 0; i < COPIED_ATTRIBUTES; i++) {
        CUlaunchAttribute *a = &n->attributes[n->config.numAttrs];
        memset(&value, 0, sizeof value);
        if (driver->cuGraphKernelNodeGetAttribute_(n->handle, copied_attributes[i], &value) != CUDA_SUCCESS)
            continue;
        *a = (CUlaunchAttribute){.id = copied_attributes[i], .value = value};
        n->config.numAttrs += is_set(a);
    }
    memset(&value, 0, sizeof value);
    if (driver->cuGraphKernelNodeGetAttribute_(n->handle, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
            CUDA_SUCCESS &&
        value.deviceUpdatableKernelNode.deviceUpdatable) {
        n->is_updatable = true;
        n->obstacle = UPDATABLE;
    }
    describe_launch(n);
}

static void read_kernel(node *n)
{
    CUDA_KERNEL_NODE_PARAMS params;
    if (driver->cuGraphKernelNodeGetParams_(n->handle, &params) != CUDA_SUCCESS) {
        n->obstacle = "the driver does not tell what one of its kernels is";
        n->may_wait = true;
        return;
    }
    set_kernel(n, &params);
    read_attributes(n);
}

/* Sets and copies */

static void set_memset(node *n, const CUDA_MEMSET_NODE_PARAMS *p)
{
    size_t bytes = p->elementSize == 1 || p->elementSize == 2 ? p->elementSize : 4;
    n->decoded.transfer = (kprof_transfer){
        .kind = KPROF_TRANSFER_SET,
        .destination = p->dst,
        .value = bytes == 4 ? p->value : p->value & ((1u << 8 * bytes) - 1),
        .element_bytes = bytes,
        .pitch_bytes = p->pitch,
        .width = p->width,
        .height = p->height,
    };
    n->callback = p->elementSize == 1   ? ID(cuMemsetD2D8Async)
                  : p->elementSize == 2 ? ID(cuMemsetD2D16Async)
                                        : ID(cuMemsetD2D32Async);
    n->obstacle = NULL;
}

/* Find out which side of a copy is the host's. */
static void sort_copy(node *n)
{
    kprof_transfer *t = &n->decoded.transfer;
    const kprof_place to = kprof_driver_find_place(driver, t->destination),
                      from = kprof_driver_find_place(driver, t->source);
    const bool to_host = kprof_place_is_hosts(to), from_host = kprof_place_is_hosts(from);
    n->obstacle = to == KPROF_PLACE_UNKNOWN || from == KPROF_PLACE_UNKNOWN
                      ? "the driver does not tell from where or to where one of its nodes copies"
                  : to_host && from_host ? "it copies from the host to the host"
                                         : NULL;
    n->lasting = to_host || from_host ? "it copies from or to the host, which a replay would do again" : NULL;
    n->reads_pageable = from == KPROF_PLACE_PAGEABLE;
    t->kind = to_host ? KPROF_TRANSFER_OUT : from_host ? KPROF_TRANSFER_IN : KPROF_TRANSFER_COPY;
}

static void set_memcpy(node *n, const CUDA_MEMCPY3D *p)
{
    CUDA_MEMCPY3D copy = *p;
    copy.Height += p->Height == 0;
    copy.Depth += p->Depth == 0;
    n->callback = ID(cuMemcpyDtoDAsync_v2);
    n->lasting = NULL;
    n->reads_pageable = false;
    if (kprof_transfer_of_layers(&copy, &n->decoded.transfer)) {
        sort_copy(n);
    } else {
        n->obstacle = "it copies from or to arrays, or several layers at once";
        n->decoded.transfer = (kprof_transfer){.kind = KPROF_TRANSFER_COPY};
    }
}

static void read_memset(node *n)
{
    CUDA_MEMSET_NODE_PARAMS params;
    if (driver->cuGraphMemsetNodeGetParams_(n->handle, &params) == CUDA_SUCCESS)
        set_memset(n, &params);
    else
        n->obstacle = "the driver does not tell what one of its nodes sets";
}

static void read_memcpy(node *n)
{
    CUDA_MEMCPY3D params;
    if (driver->cuGraphMemcpyNodeGetParams_(n->handle, &params) == CUDA_SUCCESS)
        set_memcpy(n, &params);
    else
        n->obstacle = "the driver does not tell what one of its nodes copies";
}

/* Read a node that is no kernel, set or copy. */
static void read_other(node *n, CUgraphNodeType type)
{
    bool is_host = type == CU_GRAPH_NODE_TYPE_HOST;
    bool is_event = type == CU_GRAPH_NODE_TYPE_WAIT_EVENT || type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    bool is_memory = type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    n->does_nothing = type == CU_GRAPH_NODE_TYPE_EMPTY || is_host || is_event; /* to memory of the device */
    n->may_wait = !is_memory && type != CU_GRAPH_NODE_TYPE_EMPTY;
    if (n->does_nothing)
        n->lasting = is_host    ? "it calls a function of the host, which a replay would call again"
                     : is_event ? "it records events, or waits for them, which a replay would do again"
                                : NULL;
    else
        n->obstacle = type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? "it has a conditional node"
                      : is_memory                            ? "it allocates or frees memory"
                                                             : "it waits for, or signals, what is outside of it";
}

/* Graphs */

static const char *read_graph(graph *g, CUgraph source, unsigned depth);

/* NULL, or why the graph cannot be followed. */
static const char *read_node(graph *g, CUgraphNode handle, unsigned depth)
{
    const kprof_cupti_api *cupti;
    CUgraphNodeType type;
    CUgraph child;
    if (driver->cuGraphNodeGetType_(handle, &type) != CUDA_SUCCESS)
        return "the driver does not tell what its nodes are";
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraphNode before = g->parent;
        g->parent = before ? before : handle;
        const char *obstacle = driver->cuGraphChildGraphNodeGetGraph_(handle, &child) == CUDA_SUCCESS
                                   ? read_graph(g, child, depth + 1)
                                   : "the driver does not tell what a graph in it does";
        g->parent = before;
        return obstacle;
    }
    node *n = calloc(1, sizeof *n);
    if (!n)
        return NO_MEMORY;
    n->handle = handle;
    n->parent = g->parent;
    n->note = kprof_node_notes_find(handle);
    n->may_launch = type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
    if (kprof_cupti_load(&cupti) == KPROF_OK)
        (void)cupti->cuptiGetGraphNodeId(handle, &n->id);
    if (type == CU_GRAPH_NODE_TYPE_KERNEL)
        read_kernel(n);
    else if (type == CU_GRAPH_NODE_TYPE_MEMSET)
        read_memset(n);
    else if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
        read_memcpy(n);
    else
        read_other(n, type);
    *g->end = n;
    g->end = &n->next;
    return NULL;
}

/* A graph's nodes and dependencies, as the driver tells them. */
typedef struct template_graph {
    CUgraphNode *nodes;     /* [count], owned */
    CUgraphNode *from, *to; /* [edge_count], owned */
    CUgraphEdgeData *data;  /* likewise */
    size_t *order;          /* [count], owned: indices of the nodes */
    size_t count, edge_count;
} template_graph;

/* Read each node after those that come before it. */
static const char *read_in_order(graph *g, const template_graph *t, unsigned depth)
{
    const char *obstacle = NULL;
    kprof_graph_edges edges = {t->nodes, t->from, t->to, t->count, t->edge_count};
    size_t ordered;
    if (!kprof_graph_order(&edges, t->order, &ordered))
        return NO_MEMORY;
    for (size_t i = 0; i < ordered && !obstacle; i++)
        obstacle = read_node(g, t->nodes[t->order[i]], depth);
    return !obstacle && ordered < t->count ? "its dependencies go round" : obstacle;
}

static const char *read_graph(graph *g, CUgraph source, unsigned depth)
{
    template_graph t = {0};
    const char *obstacle = "the driver does not tell its nodes, or what comes before which";
    if (depth > MAX_NESTING || driver->cuGraphGetNodes_(source, NULL, &t.count) != CUDA_SUCCESS ||
        driver->cuGraphGetEdges_(source, NULL, NULL, NULL, &t.edge_count) != CUDA_SUCCESS)
        return obstacle;
    t.nodes = calloc(t.count + 1, sizeof(*t.nodes));
    t.from = calloc(t.edge_count + 1, sizeof(*t.from));
    t.to = calloc(t.edge_count + 1, sizeof(*t.to));
    t.data = calloc(t.edge_count + 1, sizeof(*t.data));
    t.order = calloc(t.count + 1, sizeof(*t.order));
    if (!t.nodes || !t.from || !t.to || !t.data || !t.order)
        obstacle = NO_MEMORY;
    else if ((t.count == 0 || driver->cuGraphGetNodes_(source, t.nodes, &t.count) == CUDA_SUCCESS) &&
             (t.edge_count == 0 ||
              driver->cuGraphGetEdges_(source, t.from, t.to, t.data, &t.edge_count) == CUDA_SUCCESS))
        obstacle = read_in_order(g, &t, depth);
    KPROF_FREE(t.nodes, t.from, t.to, t.data, t.order);
    return obstacle;
}

static void free_node(node *n)
{
    kprof_arguments_free(&n->arguments);
    KPROF_FREE(n->name, n);
}

static void free_nodes(graph *g)
{
    for (node *n = g->first, *next; n; n = next) {
        next = n->next;
        free_node(n);
    }
    g->first = NULL;
    g->end = &g->first;
}

static graph *find(CUgraphExec exec)
{
    graph *g = list.first;
    while (g && g->exec != exec)
        g = g->next;
    return g;
}

static graph *find_to_change(CUgraphExec exec)
{
    graph *g = find(exec);
    if (g)
        g->changed = true;
    return g;
}

static void forget(CUgraphExec exec)
{
    for (graph **link = &list.first; *link; link = &(*link)->next) {
        graph *g = *link;
        if (g->exec != exec)
            continue;
        *link = g->next;
        free_nodes(g);
        KPROF_FREE(g->calls, g);
        return;
    }
}

static void add(CUgraphExec exec, CUgraph source)
{
    forget(exec);
    graph *g = calloc(1, sizeof *g);
    if (!g)
        return;
    g->exec = exec;
    g->changed = true;
    g->end = &g->first;
    g->obstacle = read_graph(g, source, 0);
    g->next = list.first;
    list.first = g;
}

/* The nodes of the graph that it is updated from stand in the same order; later updates name the old ones. */
static void update(CUgraphExec exec, CUgraph source)
{
    graph *g = find_to_change(exec);
    if (!g)
        return;
    graph old = *g;
    g->first = g->to_change = NULL;
    g->end = &g->first;
    g->obstacle = read_graph(g, source, 0);
    node *was = old.first;
    for (node *n = g->first; n && was; n = n->next, was = was->next) {
        n->handle = was->handle;
        n->parent = was->parent;
        n->id = was->id;
        n->disabled = was->disabled;
    }
    free_nodes(&old);
}

/* Another graph takes the place of one within: its nodes stand in the same order. */
static void update_child(CUgraphExec exec, CUgraphNode parent, CUgraph child)
{
    graph *g = find_to_change(exec), with = {.parent = parent};
    if (!g)
        return;
    g->to_change = NULL;
    with.end = &with.first;
    with.obstacle = read_graph(&with, child, 1);
    for (node **link = &g->first; *link; link = &(*link)->next) {
        node *old = *link, *new = with.first;
        if (old->parent != parent || !new)
            continue;
        with.first = new->next;
        new->next = old->next;
        new->handle = old->handle;
        new->id = old->id;
        new->disabled = old->disabled;
        *link = new;
        g->end = g->end == &old->next ? &new->next : g->end;
        free_node(old);
    }
    if (with.obstacle || with.first)
        g->obstacle = with.obstacle ? with.obstacle : "a graph in it was replaced by one of another kind";
    free_nodes(&with);
}

/* Programs change the nodes of a graph one after the other, so look behind the last one first. */
static node *find_node(CUgraphExec exec, CUgraphNode handle)
{
    graph *g = find_to_change(exec);
    node *n = g ? g->to_change : NULL;
    while (n && n->handle != handle)
        n = n->next;
    if (g && !n)
        for (n = g->first; n && n->handle != handle;)
            n = n->next;
    if (g && !n)
        g->obstacle = "one of its nodes was changed that is not known";
    if (g)
        g->to_change = n ? n->next : NULL;
    return n;
}

static void set_any(node *n, const CUgraphNodeParams *p)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 *k = &p->kernel;
    const CUDA_MEMSET_NODE_PARAMS_v2 *m = &p->memset;
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL)
        set_kernel(n, &(CUDA_KERNEL_NODE_PARAMS){k->func, k->gridDimX, k->gridDimY, k->gridDimZ, k->blockDimX,
                                                 k->blockDimY, k->blockDimZ, k->sharedMemBytes, k->kernelParams,
                                                 k->extra, k->kern, k->ctx});
    else if (p->type == CU_GRAPH_NODE_TYPE_MEMSET)
        set_memset(n, &(CUDA_MEMSET_NODE_PARAMS){m->dst, m->pitch, m->value, m->elementSize, m->width, m->height});
    else if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        set_memcpy(n, &p->memcpy.copyParams);
    else if (!n->does_nothing)
        n->obstacle = "one of its nodes was changed by a call that is not followed";
}

static void set_any_node(CUgraphExec exec, CUgraphNode handle, const CUgraphNodeParams *p)
{
    const bool is_child = p->type == CU_GRAPH_NODE_TYPE_GRAPH;
    node *n = is_child ? NULL : find_node(exec, handle);
    if (is_child)
        update_child(exec, handle, p->graph.graph);
    else if (n)
        set_any(n, p);
}

static void give_up(CUgraphExec exec)
{
    graph *g = find(exec);
    if (g)
        g->obstacle = "one of its nodes was changed by a call that is not followed";
}

/* Follow one driver call that changes executable graphs. Its arguments `p` are whole nodes, so this file reads them. */
#define ON(call, ...)                                                                                                  \
    case CUPTI_DRIVER_TRACE_CBID_##call: {                                                                             \
        const call##_params *p = parameters;                                                                           \
        if (kprof_driver_load(&driver) != KPROF_OK)                                                                    \
            break;                                                                                                     \
        KPROF_RELAX(driver); /* asking may load modules */                                                             \
        KPROF_HOLD(list.mutex);                                                                                        \
        __VA_ARGS__;                                                                                                   \
        break;                                                                                                         \
    }
/* Likewise a call that changes the node `n`. */
#define ON_NODE(call, ...) ON(call, node *n = find_node(p->hGraphExec, p->hNode); if (n) __VA_ARGS__)

void kprof_graphs_note(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
        ON(cuGraphInstantiate, add(*p->phGraphExec, p->hGraph))
        ON(cuGraphInstantiate_v2, add(*p->phGraphExec, p->hGraph))
        ON(cuGraphInstantiateWithFlags, add(*p->phGraphExec, p->hGraph))
        ON(cuGraphInstantiateWithParams, add(*p->phGraphExec, p->hGraph))
        ON(cuGraphInstantiateWithParams_ptsz, add(*p->phGraphExec, p->hGraph))
        ON(cuGraphExecUpdate, update(p->hGraphExec, p->hGraph))
        ON(cuGraphExecUpdate_v2, update(p->hGraphExec, p->hGraph))
        ON(cuGraphExecDestroy, forget(p->hGraphExec))
        ON(cuGraphExecChildGraphNodeSetParams, update_child(p->hGraphExec, p->hNode, p->childGraph))
        ON(cuGraphExecNodeSetParams, set_any_node(p->hGraphExec, p->hNode, p->nodeParams))
        ON(cuGraphExecKernelNodeSetParams, give_up(p->hGraphExec))
        ON_NODE(cuGraphExecKernelNodeSetParams_v2, set_kernel(n, p->nodeParams))
        ON_NODE(cuGraphExecMemsetNodeSetParams, set_memset(n, p->memsetParams))
        ON_NODE(cuGraphExecMemcpyNodeSetParams, set_memcpy(n, p->copyParams))
        ON_NODE(cuGraphNodeSetEnabled, n->disabled = !p->isEnabled)
    default:
        break;
    }
}

/* Launches */

static void set_stream(node *n, CUstream stream)
{
    n->decoded.stream = stream;
    if (n->callback == ID(cuLaunchKernelEx))
        n->decoded.launch.stream = stream;
    else
        n->decoded.transfer.stream = stream;
}

static kprof_graph_call describe(const node *n, const kprof_call *launch)
{
    bool kernel = n->callback == ID(cuLaunchKernelEx);
    kprof_call call = {
        .kind = kernel ? KPROF_CALL_LAUNCH : KPROF_CALL_TRANSFER,
        .name = launch->name,
        .context = launch->context,
        .context_id = launch->context_id,
        .stream = launch->stream,
        .function = kernel ? (void *)n->decoded.launch.function : NULL,
        .kernel_name = n->name,
        .callback_id = n->callback,
        .node_traits = n->traits,
        .parameters = &n->decoded,
    };
    return (kprof_graph_call){call, n->id, n->note};
}

/* Make space for a call of each node. */
static bool reserve(graph *g)
{
    size_t count = 1;
    for (const node *n = g->first; n; n = n->next)
        count++;
    if (count <= g->capacity)
        return true;
    free(g->calls);
    g->calls = calloc(count, sizeof *g->calls);
    g->capacity = g->calls ? count : 0;
    return g->calls != NULL;
}

static const char *find_obstacle(const node *n, const kprof_call *launch)
{
    return n->context && n->context != launch->context ? "its kernels run in several contexts" : n->obstacle;
}

static bool may_launch(const graph *g)
{
    bool may = g->obstacle != NULL; /* the graph is not known */
    for (const node *n = g->first; n && !may; n = n->next)
        may = n->may_launch && !n->disabled;
    return may;
}

/* Copies from and to the host. Before the graph is launched, kprof keeps what a node brings from the host, and when the
 * graph has ended, what it takes to the host. That is what the node copies, unless another node changes it. All nodes
 * that a node waits for stand before it in the graph's order, and others may, too. */

/* Can the host, or work outside of the graph, find out that the node has been reached, and act upon that? */
static bool tells_others(const node *n)
{
    return !n->disabled && n->does_nothing && n->lasting;
}

static bool is_transfer(const node *n, kprof_transfer_kind kind)
{
    return !n->disabled && n->callback == ID(cuMemcpyDtoDAsync_v2) && n->decoded.transfer.kind == kind;
}

static bool writes_device(const node *n)
{
    return !n->disabled && !n->does_nothing && !is_transfer(n, KPROF_TRANSFER_OUT);
}

/* The last nodes of their kinds; NULL: there is none of them. */
typedef struct last_nodes {
    const node *writes_device, *tells_others;
} last_nodes;

static last_nodes find_last(const graph *g)
{
    last_nodes last = {0};
    for (const node *n = g->first; n; n = n->next) {
        last.writes_device = writes_device(n) ? n : last.writes_device;
        last.tells_others = tells_others(n) ? n : last.tells_others;
    }
    return last;
}

/* Does a node before `end` copy to what this one copies from the host? */
static bool is_output_of_graph(const graph *g, const node *input, const node *end)
{
    const kprof_transfer *in = &input->decoded.transfer;
    CUdeviceptr in_end = in->source + kprof_transfer_source_bytes(in);
    for (const node *n = g->first; n != end; n = n->next) {
        const kprof_transfer *out = &n->decoded.transfer;
        if (is_transfer(n, KPROF_TRANSFER_OUT) && out->destination < in_end &&
            in->source < out->destination + kprof_transfer_destination_bytes(out))
            return true;
    }
    return false;
}

/* Launches of one graph wait for each other, whatever their streams; kprof's copies before and behind a launch do not.
 * Nodes may have been given other memory since the last launch. A captured launch runs nothing. */
static unsigned note_stream(graph *g, const kprof_call *launch)
{
    bool is_threads = launch->stream == CU_STREAM_PER_THREAD && !pthread_equal(g->thread, pthread_self());
    bool changes = g->launched && (launch->stream != g->stream || is_threads);
    if ((changes || !g->launched) && !kprof_stream_is_captured(launch->stream)) {
        g->launched = true;
        g->stream = launch->stream;
        g->thread = pthread_self();
    }
    return changes ? KPROF_NODE_CHANGES_STREAM : 0;
}

static unsigned traits_of_input(const graph *g, const node *n, const last_nodes *last)
{
    bool has_results = last->tells_others || is_output_of_graph(g, n, NULL);
    return (n->reads_pageable ? KPROF_NODE_READS_PAGEABLE : 0) | (has_results ? KPROF_NODE_READS_RESULTS : 0);
}

static unsigned traits_of_output(const last_nodes *behind)
{
    return (behind->tells_others ? KPROF_NODE_IS_TOLD : 0) | (behind->writes_device ? KPROF_NODE_HIDES_OUTPUT : 0);
}

/* Return why what the node copies from the host is not there before the launch; NULL if it is. */
static const char *find_input_obstacle(const graph *g, const node *n, bool told)
{
    if (!kprof_transfer_may_be_kept(&n->decoded.transfer))
        return "it copies more from the host than kprof keeps";
    if (told)
        return "it copies from the host what its functions of the host, or others that it has events for, may write";
    return is_output_of_graph(g, n, n) ? "it copies from the host what it has copied there before" : NULL;
}

static const kprof_graph_call *list_calls(graph *g, const kprof_call *launch, size_t *count, const char **why)
{
    const last_nodes last = find_last(g);
    const unsigned changes = note_stream(g, launch);
    last_nodes behind = last;
    bool told = false;
    *count = 0;
    *why = reserve(g) ? g->obstacle : NO_MEMORY;
    for (node *n = g->first; n && !*why; n = n->next) {
        told = told || tells_others(n);
        behind.writes_device = behind.writes_device == n ? NULL : behind.writes_device;
        behind.tells_others = behind.tells_others == n ? NULL : behind.tells_others;
        if (n->does_nothing || n->disabled)
            continue;
        bool in = is_transfer(n, KPROF_TRANSFER_IN), out = is_transfer(n, KPROF_TRANSFER_OUT);
        set_stream(n, launch->stream);
        *why = find_obstacle(n, launch);
        if (in && !*why)
            *why = find_input_obstacle(g, n, told);
        if (out && !*why && !behind.writes_device && !kprof_transfer_may_be_kept(&n->decoded.transfer))
            *why = "it copies more to the host than kprof keeps";
        n->traits = KPROF_NODE | (in ? traits_of_input(g, n, &last) : 0) | (out ? traits_of_output(&behind) : 0) |
                    (in || out ? changes : 0);
        g->calls[(*count)++] = describe(n, launch);
    }
    if (!*why)
        return g->calls;
    if (!may_launch(g))
        *why = NULL;
    return NULL;
}

/* The graph of a launch; NULL when it is not known, or the launch is none of a graph. */
static graph *find_launched(const kprof_call *launch)
{
    const kprof_decoded_call *decoded = launch->parameters;
    return decoded->launch.is_graph ? find(decoded->launch.graph) : NULL;
}

const kprof_graph_call *kprof_graphs_find(const kprof_call *launch, size_t *count, const char **why)
{
    *count = 0;
    *why = UNKNOWN_GRAPH;
    KPROF_HOLD(list.mutex);
    graph *g = find_launched(launch);
    return g ? list_calls(g, launch, count, why) : NULL;
}

/* Launches as a whole */

bool kprof_graphs_visit(const kprof_call *launch, kprof_graph_visitor *visit, void *user)
{
    KPROF_HOLD(list.mutex);
    graph *g = find_launched(launch);
    for (node *n = g ? g->first : NULL; n; n = n->next) {
        const kprof_graph_call call = describe(n, launch);
        if (!n->does_nothing && !n->disabled && n->callback && !visit(&call.call, user))
            return false;
    }
    return true;
}

kprof_graph_identity kprof_graphs_identify(const kprof_call *launch)
{
    kprof_graph_identity out = {0};
    KPROF_HOLD(list.mutex);
    graph *g = find_launched(launch);
    bool known = g && !g->obstacle;
    if (known) {
        out = (kprof_graph_identity){
            .number = hash_bytes(0, NULL, 0), .launches_none = !may_launch(g), .changed = g->changed};
        g->changed = false;
    }
    for (const node *n = known ? g->first : NULL; n; n = n->next) {
        bool is_kernel = n->callback == ID(cuLaunchKernelEx);
        out.kernels += is_kernel && !n->disabled;
        if (!n->disabled)
            out.number = is_kernel ? hash_bytes(out.number, &n->hash, sizeof n->hash)
                                   : hash_bytes(out.number, &n->callback, sizeof n->callback);
    }
    return out;
}

static const char *find_any_obstacle(const graph *g, const kprof_call *launch, bool *waits)
{
    const char *why = g->obstacle;
    *waits = why != NULL;
    for (const node *n = g->first; n; n = n->next) {
        const char *obstacle = n->lasting ? n->lasting : find_obstacle(n, launch);
        if (n->disabled || !obstacle)
            continue;
        why = why ? why : obstacle;
        *waits = *waits || n->may_wait;
    }
    return why;
}

const char *kprof_graphs_obstacle(const kprof_call *launch, bool *waits)
{
    *waits = true;
    KPROF_HOLD(list.mutex);
    graph *g = find_launched(launch);
    return g ? find_any_obstacle(g, launch, waits) : UNKNOWN_GRAPH;
}
