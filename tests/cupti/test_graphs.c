/* What is known of an executable graph: its kernels, sets and copies one by one, and what keeps it from being launched
 * again as a whole. The driver has the graphs that the test makes. */
#include "cupti/calls.h"
#include "cupti/driver.h"
#include "cupti/graphs.h"
#include "cupti/node_notes.h"
#include "host/load.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

enum { NODES = 4, LARGE = 40000 };

/* Memory of the device; pinned, pageable and managed memory; and memory that the driver does not tell of. */
static const CUdeviceptr on_device = 0x1000, on_host = 0x2000, pageable = 0x3000, managed = 0x4000, untold = 0x5000;

typedef struct template_node {
    CUgraphNodeType type;
    const char *kernel; /* its function is where the name is */
    bool updatable;     /* by kernels */
    CUdeviceptr from;   /* of a copy */
    CUdeviceptr to;     /* likewise; 0: memory of the device */
    size_t layers;      /* likewise; 0: one */
    size_t rows;        /* likewise; 0: one */
    struct template_graph *child;
} template_node;

/* The nodes of a graph come one after the other. */
typedef struct template_graph {
    template_node nodes[NODES];
    template_node *many; /* in place of `nodes`, where there are more */
    bool goes_round;     /* the first node comes after the last one */
    size_t count;
} template_graph;

static char own_context, own_stream, captured_stream, executable;
static bool capturing;

static CUgraphNode node_of(template_graph *t, size_t i)
{
    return (CUgraphNode)(void *)(t->many ? &t->many[i] : &t->nodes[i]);
}

static CUresult CUDAAPI get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    template_graph *t = (template_graph *)(void *)graph;
    *count = t->count;
    for (size_t i = 0; nodes && i < t->count; i++)
        nodes[t->count - 1 - i] = node_of(t, i); /* not in their order */
    return CUDA_SUCCESS;
}

/* NOLINTNEXTLINE(readability-function-size): as the driver has it */
static CUresult CUDAAPI get_edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                  size_t *count)
{
    template_graph *t = (template_graph *)(void *)graph;
    *count = t->count > 0 ? t->count - !t->goes_round : 0;
    for (size_t i = 0; from && i < *count; i++) {
        from[i] = node_of(t, i);
        to[i] = node_of(t, (i + 1) % t->count);
    }
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_type(CUgraphNode node, CUgraphNodeType *type)
{
    *type = ((const template_node *)(void *)node)->type;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_child(CUgraphNode node, CUgraph *graph)
{
    *graph = (CUgraph)(void *)((const template_node *)(void *)node)->child;
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
    const template_node *n = (const template_node *)(void *)node;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)(void *)(uintptr_t)n->kernel, .gridDimX = 1, .blockDimX = 32};
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_kernel_attribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        value->deviceUpdatableKernelNode.deviceUpdatable = ((const template_node *)(void *)node)->updatable;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_memset(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
    *out = (CUDA_MEMSET_NODE_PARAMS){.dst = on_device, .value = 0xabcdef, .elementSize = 4, .width = 16, .height = 1};
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_memcpy(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    const template_node *n = (const template_node *)(void *)node;
    *out = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = n->from,
                           .srcPitch = 256,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = n->to ? n->to : on_device,
                           .dstPitch = 128,
                           .WidthInBytes = 64,
                           .Height = n->rows,
                           .Depth = n->layers};
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUdeviceptr place = address & ~(CUdeviceptr)0xfff;
    if (place == untold)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (place == pageable)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED)
        *(unsigned *)out = place == managed;
    else
        *(unsigned *)out = place == on_host || place == managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI get_name(const char **name, CUfunction function)
{
    *name = (const char *)(void *)function;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI no_parameter(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI exchange_mode(CUstreamCaptureMode *mode)
{
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = capturing && (void *)stream == &captured_stream ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                              : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* In place of the driver's, and of CUPTI's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuGraphGetNodes_ = get_nodes,
                                         .cuGraphGetEdges_ = get_edges,
                                         .cuGraphNodeGetType_ = get_type,
                                         .cuGraphChildGraphNodeGetGraph_ = get_child,
                                         .cuGraphKernelNodeGetParams_ = get_kernel,
                                         .cuGraphKernelNodeGetAttribute_ = get_kernel_attribute,
                                         .cuGraphMemsetNodeGetParams_ = get_memset,
                                         .cuGraphMemcpyNodeGetParams_ = get_memcpy,
                                         .cuPointerGetAttribute_ = get_pointer_attribute,
                                         .cuFuncGetName_ = get_name,
                                         .cuFuncGetParamInfo_ = no_parameter,
                                         .cuStreamIsCapturing_ = is_capturing,
                                         .cuThreadExchangeStreamCaptureMode_ = exchange_mode};
    *out = &api;
    return KPROF_OK;
}

kprof_status kprof_cupti_load(const kprof_cupti_api **out)
{
    *out = NULL;
    return KPROF_UNSUPPORTED;
}

static CUgraphExec exec_graph(void)
{
    return (CUgraphExec)(void *)&executable;
}

static void instantiate(template_graph *from)
{
    CUgraphExec exec = exec_graph();
    cuGraphInstantiateWithFlags_params p = {.phGraphExec = &exec, .hGraph = (CUgraph)(void *)from};
    kprof_graphs_note(ID(cuGraphInstantiateWithFlags), &p);
}

static int destroy(void **state)
{
    cuGraphExecDestroy_params p = {.hGraphExec = exec_graph()};
    kprof_graphs_note(ID(cuGraphExecDestroy), &p);
    return 0;
}

/* One launch of the graph. */
static const kprof_decoded_call decoded_launch = {
    .launch = {.is_graph = true, .graph = (CUgraphExec)(void *)&executable}};
static const kprof_call launch = {.kind = KPROF_CALL_GRAPH_LAUNCH,
                                  .context = &own_context,
                                  .stream = &own_stream,
                                  .callback_id = ID(cuGraphLaunch),
                                  .parameters = &decoded_launch};

static template_graph example(void)
{
    return (template_graph){.nodes = {{.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "first"},
                                      {.type = CU_GRAPH_NODE_TYPE_MEMSET},
                                      {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_device},
                                      {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "second"}},
                            .count = 4};
}

static uint32_t identify(size_t kernels)
{
    kprof_graph_identity found = kprof_graphs_identify(&launch);
    assert_int_equal(found.kernels, kernels);
    assert_false(kprof_graphs_identify(&launch).changed);
    return found.number;
}

static void assert_repeatable(void)
{
    bool waits;
    assert_null(kprof_graphs_obstacle(&launch, &waits));
    assert_false(waits);
}

static void assert_obstacle(const char *why, bool may_wait)
{
    bool waits;
    const char *obstacle = kprof_graphs_obstacle(&launch, &waits);
    assert_non_null(obstacle);
    if (!strstr(obstacle, why))
        fail_msg("the reason is \"%s\", not \"%s\"", obstacle, why);
    assert_int_equal(waits, may_wait);
}

static bool count_kinds(const kprof_call *node, void *user)
{
    char **text = user;
    const char *name = node->kind == KPROF_CALL_LAUNCH ? node->kernel_name : "transfer";
    strcat(*text, name);
    strcat(*text, " ");
    return strcmp(name, "second") != 0;
}

static void assert_visited(const char *nodes, bool all)
{
    char text[128] = "", *list = text;
    assert_int_equal(kprof_graphs_visit(&launch, count_kinds, &list), all);
    assert_string_equal(text, nodes);
}

TEST(test_nodes)
{
    size_t count;
    const char *why;
    template_graph t = example();
    kprof_node_notes_set(node_of(&t, 3), 7);
    instantiate(&t);
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    assert_int_equal(count, 4);
    assert_int_equal(calls[3].note, 7);
    assert_int_equal(calls[0].note, 0);
    kprof_node_notes_set(node_of(&t, 3), 0);
    assert_string_equal(calls[3].call.kernel_name, "second");
    assert_visited("first transfer transfer second ", false); /* the visitor ends there */
    assert_repeatable();
    t.count = 3;
    instantiate(&t);
    assert_visited("first transfer transfer ", true);
}

static const kprof_decoded_call *decoded_of(const kprof_graph_call *node)
{
    assert_ptr_equal(node->call.stream, &own_stream);
    return node->call.parameters;
}

static template_graph pair_of_kernels(const char *first, const char *last)
{
    return (template_graph){.nodes = {{.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = first},
                                      {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = last}},
                            .count = 2};
}

static template_graph example_with_child(template_graph *child)
{
    return (template_graph){.nodes = {{.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "first"},
                                      {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child},
                                      {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "last"}},
                            .count = 3};
}

static void replace_child(template_graph *t, template_graph *by)
{
    cuGraphExecChildGraphNodeSetParams_params p = {
        .hGraphExec = exec_graph(), .hNode = node_of(t, 1), .childGraph = (CUgraph)(void *)by};
    kprof_graphs_note(ID(cuGraphExecChildGraphNodeSetParams), &p);
}

/* A child's nodes stand in the place of its node, and changes of them are followed. */
TEST(test_child_graphs)
{
    template_graph child = pair_of_kernels("a", "b"), other = pair_of_kernels("c", "d");
    template_graph t = example_with_child(&child);
    instantiate(&t);
    assert_visited("first a b last ", true);
    assert_repeatable();
    uint32_t before = identify(4);
    CUDA_KERNEL_NODE_PARAMS params = {.func = (CUfunction)(void *)(uintptr_t) "e", .gridDimX = 1, .blockDimX = 32};
    cuGraphExecKernelNodeSetParams_v2_params change = {
        .hGraphExec = exec_graph(), .hNode = node_of(&child, 1), .nodeParams = &params};
    kprof_graphs_note(ID(cuGraphExecKernelNodeSetParams_v2), &change);
    assert_visited("first a e last ", true);
    assert_int_not_equal(kprof_graphs_identify(&launch).number, before);
    change.hNode = node_of(&child, 0); /* in another order than that of the nodes */
    kprof_graphs_note(ID(cuGraphExecKernelNodeSetParams_v2), &change);
    assert_visited("first e e last ", true);
    replace_child(&t, &other);
    assert_visited("first c d last ", true);
    assert_repeatable();
    change.hNode = node_of(&child, 1); /* it is still called so */
    kprof_graphs_note(ID(cuGraphExecKernelNodeSetParams_v2), &change);
    assert_visited("first c e last ", true);
    other = example(); /* with more nodes */
    replace_child(&t, &other);
    assert_obstacle("replaced by one of another kind", true);
}

TEST(test_child_graph_of_a_child)
{
    template_graph innermost = pair_of_kernels("a", "b"), child = example_with_child(&innermost);
    template_graph t = example_with_child(&child);
    instantiate(&t);
    assert_visited("first first a b last last ", true);
    innermost.nodes[1].type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    instantiate(&t);
    assert_obstacle("it has a conditional node", true);
    t.nodes[1].child = NULL;
    instantiate(&t);
    assert_obstacle("the driver does not tell what a graph in it does", true);
}

/* The calls that do the same as the nodes. */
TEST(test_calls_of_nodes)
{
    size_t count;
    const char *why;
    template_graph t = example();
    instantiate(&t);
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    const kprof_decoded_call *kernel = decoded_of(&calls[0]);
    assert_true(kernel->launch.has_arguments && !kernel->launch.arguments && !kernel->launch.extra);
    assert_true(kernel->launch.grid[0] == 1 && kernel->launch.block[0] == 32 && kernel->launch.config);
    assert_ptr_equal(kernel->launch.stream, &own_stream);
    const kprof_transfer *set = &decoded_of(&calls[1])->transfer, *copy = &decoded_of(&calls[2])->transfer;
    assert_true(set->kind == KPROF_TRANSFER_SET && set->destination == on_device && set->element_bytes == 4);
    assert_true(set->width == 16 && set->height == 1 && set->value == 0xabcdef);
    assert_ptr_equal(set->stream, &own_stream);
    assert_true(copy->kind == KPROF_TRANSFER_COPY && copy->destination == on_device && copy->source == on_device);
    assert_true(copy->width == 64 && copy->height == 1);
    cuGraphExecMemsetNodeSetParams_params change = {
        .hGraphExec = exec_graph(),
        .hNode = node_of(&t, 1),
        .memsetParams =
            &(CUDA_MEMSET_NODE_PARAMS){.dst = on_device, .value = 0xabcdef, .elementSize = 2, .width = 8, .height = 1}};
    kprof_graphs_note(ID(cuGraphExecMemsetNodeSetParams), &change);
    calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    set = &decoded_of(&calls[1])->transfer;
    assert_true(set->element_bytes == 2 && set->value == 0xcdef && set->width == 8);
}

static void set_nodes(template_graph *t, const template_node *nodes, size_t count)
{
    *t = (template_graph){.count = count};
    memcpy(t->nodes, nodes, count * sizeof *nodes);
    instantiate(t);
}

static const template_node kernel_node = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "k"};
static const template_node host_node = {.type = CU_GRAPH_NODE_TYPE_HOST};
static const template_node wait_node = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
static const template_node input_node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_host};
static const template_node pageable_node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = pageable};
static const template_node output_node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_device, .to = on_host};
static const template_node managed_node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = managed};

/* The traits of a graph's nodes, but for host functions and events, in their order. */
static void assert_traits(const template_node *nodes, size_t node_count, const unsigned *traits, size_t count)
{
    template_graph t;
    size_t found;
    const char *why;
    set_nodes(&t, nodes, node_count);
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &found, &why);
    assert_non_null(calls);
    assert_int_equal(found, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(calls[i].call.node_traits, KPROF_NODE | traits[i]);
}

static void assert_not_followed(const template_node *nodes, size_t node_count, const char *expected)
{
    template_graph t;
    size_t found;
    const char *why;
    set_nodes(&t, nodes, node_count);
    assert_null(kprof_graphs_find(&launch, &found, &why));
    assert_non_null(why);
    assert_non_null(strstr(why, expected));
}

/* kprof keeps what comes from the host before the graph is launched, and what goes there when it has ended. */
TEST(test_copies_of_the_host)
{
    const unsigned read = KPROF_NODE_READS_PAGEABLE, told = KPROF_NODE_IS_TOLD, hidden = KPROF_NODE_HIDES_OUTPUT;
    const unsigned results = KPROF_NODE_READS_RESULTS;
    template_node both[] = {input_node, kernel_node, output_node};
    assert_traits(both, 3, (unsigned[]){results, 0, 0}, 3); /* to the same memory of the host */
    both[2].to = on_host + 64;
    assert_traits(both, 3, (unsigned[]){0, 0, 0}, 3);
    const template_node then_told[] = {pageable_node, kernel_node, output_node, host_node};
    assert_traits(then_told, 4, (unsigned[]){read | results, 0, told}, 3);
    const template_node then_changed[] = {output_node, kernel_node, wait_node};
    assert_traits(then_changed, 3, (unsigned[]){told | hidden, 0}, 2);
    const template_node outputs[] = {kernel_node, output_node, output_node};
    assert_traits(outputs, 3, (unsigned[]){0, 0, 0}, 3);
    const template_node others[] = {managed_node, kernel_node, host_node};
    assert_traits(others, 3, (unsigned[]){0, 0}, 2);
    assert_obstacle("it calls a function of the host", true);
    const template_node input_behind[] = {output_node, pageable_node};
    assert_traits(input_behind, 2, (unsigned[]){hidden, read}, 2);
}

/* What the host may have changed, or the graph itself, is not what was there before the launch. */
TEST(test_copies_of_what_the_graph_changes)
{
    const template_node behind_function[] = {host_node, input_node, kernel_node};
    assert_not_followed(behind_function, 3, "its functions of the host");
    const template_node behind_event[] = {wait_node, pageable_node, kernel_node};
    assert_not_followed(behind_event, 3, "its functions of the host");
    template_node behind_output[] = {kernel_node, output_node, input_node};
    assert_not_followed(behind_output, 3, "what it has copied there before");
    behind_output[2].from = on_host + 63;
    assert_not_followed(behind_output, 3, "what it has copied there before");
    behind_output[2].from = on_host + 64;
    assert_traits(behind_output, 3, (unsigned[]){0, KPROF_NODE_HIDES_OUTPUT, 0}, 3);
}

TEST(test_copies_that_are_too_large)
{
    const size_t most = (size_t)1 << 20; /* rows */
    template_node input[] = {input_node, kernel_node}, output[] = {kernel_node, output_node, kernel_node};
    input[0].rows = output[1].rows = most;
    assert_traits(input, 2, (unsigned[]){0, 0}, 2);
    assert_traits(output, 2, (unsigned[]){0, 0}, 2);
    input[0].rows = output[1].rows = most + 1;
    assert_not_followed(input, 2, "it copies more from the host than kprof keeps");
    assert_not_followed(output, 2, "it copies more to the host than kprof keeps");
    assert_traits(output, 3, (unsigned[]){0, KPROF_NODE_HIDES_OUTPUT, 0}, 3); /* nothing is kept of it */
}

/* There its launches wait for each other, and what is kept of their copies does not. */
TEST(test_copies_in_another_stream)
{
    template_graph t;
    kprof_call elsewhere = launch;
    const template_node nodes[] = {input_node, kernel_node, output_node};
    const unsigned changes[] = {0, KPROF_NODE_CHANGES_STREAM, 0};
    set_nodes(&t, nodes, 3);
    for (size_t i = 0; i < 3; i++) {
        size_t count;
        const char *why;
        elsewhere.stream = i == 0 ? &own_stream : &own_context;
        const kprof_graph_call *calls = kprof_graphs_find(&elsewhere, &count, &why);
        assert_non_null(calls);
        assert_int_equal(calls[0].call.node_traits, KPROF_NODE | KPROF_NODE_READS_RESULTS | changes[i]);
        assert_int_equal(calls[1].call.node_traits, KPROF_NODE);
        assert_int_equal(calls[2].call.node_traits, KPROF_NODE | changes[i]);
    }
}

/* It becomes a node of another graph then, and does not run. */
TEST(test_launch_that_is_captured_between_launches)
{
    template_graph t;
    kprof_call captured = launch;
    size_t count;
    const char *why;
    const template_node nodes[] = {input_node, kernel_node};
    set_nodes(&t, nodes, 2);
    assert_non_null(kprof_graphs_find(&launch, &count, &why));
    captured.stream = &captured_stream;
    capturing = true;
    assert_non_null(kprof_graphs_find(&captured, &count, &why));
    capturing = false;
    const kprof_graph_call *calls = kprof_graphs_find(&captured, &count, &why);
    assert_non_null(calls);
    assert_true(calls[0].call.node_traits & KPROF_NODE_CHANGES_STREAM);
}

/* A node that is disabled changes nothing. */
TEST(test_disabled_nodes_beside_copies)
{
    size_t count;
    const char *why;
    template_graph t;
    const template_node nodes[] = {host_node, input_node, output_node, kernel_node};
    set_nodes(&t, nodes, 4);
    for (size_t i = 0; i < 4; i += 3) {
        cuGraphNodeSetEnabled_params disable = {.hGraphExec = exec_graph(), .hNode = node_of(&t, i)};
        kprof_graphs_note(ID(cuGraphNodeSetEnabled), &disable);
    }
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    assert_int_equal(count, 2);
    assert_int_equal(calls[1].call.node_traits, KPROF_NODE);
}

TEST(test_copies_of_rows)
{
    size_t count;
    const char *why;
    template_graph t;
    const template_node nodes[] = {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_host, .rows = 3}, kernel_node};
    set_nodes(&t, nodes, 2);
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    const kprof_transfer *in = &decoded_of(&calls[0])->transfer;
    assert_true(in->kind == KPROF_TRANSFER_IN && in->destination == on_device && in->source == on_host);
    assert_true(in->width == 64 && in->height == 3 && in->pitch_bytes == 128 && in->source_pitch_bytes == 256);
    const template_node layers[] = {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_host, .layers = 2}, kernel_node};
    assert_not_followed(layers, 2, "several layers at once");
}

TEST(test_graph_that_is_not_known)
{
    size_t count;
    const char *why;
    assert_null(kprof_graphs_find(&launch, &count, &why));
    assert_int_equal(identify(0), 0);
    assert_obstacle("it is not known what the graph does", true);
    assert_visited("", true);
}

/* The nodes are told from the last to the first, each of which has to wait for the next one. To look through all edges
 * for each of them would take hours. */
TEST(test_large_graph)
{
    size_t count;
    const char *why;
    KPROF_AUTO_FREE template_node *nodes = calloc(LARGE, sizeof *nodes);
    assert_non_null(nodes);
    for (size_t i = 0; i < LARGE; i++)
        nodes[i] = (template_node){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = i % 2 ? "odd" : "even"};
    template_graph t = {.many = nodes, .count = LARGE};
    instantiate(&t);
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    assert_int_equal(count, LARGE);
    for (size_t i = 0; i < LARGE; i++)
        assert_ptr_equal(calls[i].call.function, nodes[i].kernel);
    assert_int_not_equal(identify(LARGE), 0);
}

TEST(test_dependencies_that_go_round)
{
    template_graph t = example();
    t.goes_round = true;
    instantiate(&t);
    assert_obstacle("its dependencies go round", true);
    assert_visited("", true);
}

/* By the names of kernels, and what comes between them; what they are given changes nothing. */
TEST(test_identity)
{
    template_graph t = example(), other = example();
    instantiate(&t);
    uint32_t number = identify(2);
    other.nodes[2].from = on_device + 8;
    instantiate(&other);
    assert_int_equal(identify(2), number);
    other.nodes[3].kernel = "third";
    instantiate(&other);
    assert_int_not_equal(identify(2), number);
    t.count = 0;
    instantiate(&t);
    assert_int_not_equal(identify(0), 0);
}

TEST(test_changes)
{
    template_graph t = example(), other = example();
    instantiate(&t);
    uint32_t number = identify(2);
    cuGraphNodeSetEnabled_params disable = {.hGraphExec = exec_graph(), .hNode = (CUgraphNode)(void *)&t.nodes[3]};
    kprof_graphs_note(ID(cuGraphNodeSetEnabled), &disable);
    assert_int_not_equal(identify(1), number);
    assert_visited("first transfer transfer ", true);
    other.nodes[0].kernel = "another";
    assert_false(kprof_graphs_identify(&launch).changed);
    cuGraphExecUpdate_v2_params update = {.hGraphExec = exec_graph(), .hGraph = (CUgraph)(void *)&other};
    kprof_graphs_note(ID(cuGraphExecUpdate_v2), &update);
    assert_visited("another transfer transfer ", true);
    assert_true(kprof_graphs_identify(&launch).changed);
    cuGraphExecKernelNodeSetParams_params unknown = {.hGraphExec = exec_graph()};
    kprof_graphs_note(ID(cuGraphExecKernelNodeSetParams), &unknown);
    assert_int_equal(identify(0), 0);
    assert_obstacle("one of its nodes was changed by a call that is not followed", true);
}

/* Each entry point that makes or updates an executable graph has parameters of its own. */
TEST(test_entry_points)
{
    template_graph t = pair_of_kernels("a", "b"), other = pair_of_kernels("c", "d");
    CUgraph graph = (CUgraph)(void *)&t, with = (CUgraph)(void *)&other;
    CUgraphExec exec = exec_graph();
    cuGraphInstantiate_params first = {.phGraphExec = &exec, .hGraph = graph};
    cuGraphInstantiate_v2_params second = {.phGraphExec = &exec, .hGraph = graph};
    cuGraphInstantiateWithParams_params third = {.phGraphExec = &exec, .hGraph = graph};
    cuGraphInstantiateWithParams_ptsz_params fourth = {.phGraphExec = &exec, .hGraph = graph};
    const struct {
        CUpti_CallbackId id;
        const void *parameters;
    } rows[] = {{ID(cuGraphInstantiate), &first},
                {ID(cuGraphInstantiate_v2), &second},
                {ID(cuGraphInstantiateWithParams), &third},
                {ID(cuGraphInstantiateWithParams_ptsz), &fourth}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_graphs_note(rows[i].id, rows[i].parameters);
        assert_visited("a b ", true);
        cuGraphExecUpdate_params update = {.hGraphExec = exec, .hGraph = with};
        kprof_graphs_note(ID(cuGraphExecUpdate), &update);
        assert_visited("c d ", true);
        destroy(NULL);
        assert_obstacle("it is not known what the graph does", true);
    }
}

static void set_any(CUgraphNode node, CUgraphNodeParams params)
{
    cuGraphExecNodeSetParams_params change = {.hGraphExec = exec_graph(), .hNode = node, .nodeParams = &params};
    kprof_graphs_note(ID(cuGraphExecNodeSetParams), &change);
}

/* The one call that changes nodes of all kinds. */
TEST(test_changes_of_any_node)
{
    size_t count;
    const char *why;
    template_graph child = pair_of_kernels("a", "b"), other = pair_of_kernels("c", "d"), t = example();
    instantiate(&t);
    set_any(node_of(&t, 0),
            (CUgraphNodeParams){
                .type = CU_GRAPH_NODE_TYPE_KERNEL,
                .kernel = {.func = (CUfunction)(void *)(uintptr_t) "third", .gridDimX = 2, .blockDimX = 64}});
    set_any(node_of(&t, 1),
            (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
                                .memset = {.dst = on_device, .value = 1, .elementSize = 1, .width = 3, .height = 1}});
    set_any(node_of(&t, 2), (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                                .memcpy.copyParams = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                      .srcDevice = on_device + 8,
                                                                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                                      .dstDevice = on_device,
                                                                      .WidthInBytes = 5,
                                                                      .Height = 1,
                                                                      .Depth = 1}});
    const kprof_graph_call *calls = kprof_graphs_find(&launch, &count, &why);
    assert_non_null(calls);
    assert_string_equal(calls[0].call.kernel_name, "third");
    assert_true(decoded_of(&calls[0])->launch.grid[0] == 2 && decoded_of(&calls[0])->launch.block[0] == 64);
    assert_true(decoded_of(&calls[1])->transfer.width == 3 && decoded_of(&calls[1])->transfer.value == 1);
    assert_true(decoded_of(&calls[2])->transfer.width == 5 && decoded_of(&calls[2])->transfer.source == on_device + 8);
    assert_repeatable();
    t.nodes[1].type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT;
    instantiate(&t);
    set_any(node_of(&t, 1), (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT});
    assert_obstacle("one of its nodes was changed by a call that is not followed", true);
    t = example_with_child(&child);
    instantiate(&t);
    set_any(node_of(&t, 1),
            (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = (CUgraph)(void *)&other});
    assert_visited("first c d last ", true);
}

TEST(test_change_of_a_copy)
{
    template_graph t = example();
    instantiate(&t);
    assert_repeatable();
    CUDA_MEMCPY3D params;
    t.nodes[2].from = on_host;
    assert_int_equal(get_memcpy(node_of(&t, 2), &params), CUDA_SUCCESS);
    cuGraphExecMemcpyNodeSetParams_params change = {
        .hGraphExec = exec_graph(), .hNode = node_of(&t, 2), .copyParams = &params};
    kprof_graphs_note(ID(cuGraphExecMemcpyNodeSetParams), &change);
    assert_obstacle("it copies from or to the host", false);
}

/* A node of another kind. */
TEST(test_obstacles)
{
    static const struct {
        template_node node;
        const char *why;
        bool waits;
    } rows[] = {
        {{.type = CU_GRAPH_NODE_TYPE_HOST}, "it calls a function of the host", true},
        {{.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD}, "it records events", true},
        {{.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT}, "it records events, or waits for them", true},
        {{.type = CU_GRAPH_NODE_TYPE_CONDITIONAL}, "it has a conditional node", true},
        {{.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC}, "it allocates or frees memory", false},
        {{.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT}, "it waits for, or signals, what is outside of it", true},
        {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_host}, "it copies from or to the host", false},
        {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_device, .to = pageable},
         "it copies from or to the host",
         false},
        {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = on_host, .layers = 2}, "it copies from or to arrays", false},
        {{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .from = untold}, "the driver does not tell from where", false},
        {{.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = "k", .updatable = true}, "kernels may change its nodes", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        template_graph t = example();
        t.nodes[1] = rows[i].node;
        instantiate(&t);
        assert_obstacle(rows[i].why, rows[i].waits);
    }
    template_graph t = example();
    t.nodes[1].type = CU_GRAPH_NODE_TYPE_EMPTY;
    instantiate(&t);
    assert_repeatable();
}

/* What the host gives such a node lasts until a kernel changes it again. */
TEST(test_node_that_kernels_change)
{
    template_graph t = example();
    t.nodes[0].updatable = true;
    instantiate(&t);
    CUDA_KERNEL_NODE_PARAMS params;
    assert_int_equal(get_kernel(node_of(&t, 3), &params), CUDA_SUCCESS);
    cuGraphExecKernelNodeSetParams_v2_params change = {
        .hGraphExec = exec_graph(), .hNode = node_of(&t, 0), .nodeParams = &params};
    kprof_graphs_note(ID(cuGraphExecKernelNodeSetParams_v2), &change);
    assert_obstacle("kernels may change its nodes", false);
}

/* Memory that a graph allocates is no launch, and no reason to say that kernels are left out. */
TEST(test_graph_without_kernels)
{
    static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                            CU_GRAPH_NODE_TYPE_KERNEL};
    size_t count;
    const char *why;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        bool may_launch = types[i] != CU_GRAPH_NODE_TYPE_MEM_ALLOC;
        template_graph t = {.nodes = {{.type = types[i], .kernel = "k", .updatable = true}}, .count = 1};
        instantiate(&t);
        assert_int_equal(kprof_graphs_identify(&launch).launches_none, !may_launch);
        assert_null(kprof_graphs_find(&launch, &count, &why));
        assert_int_equal(why != NULL, may_launch);
    }
}

AROUND_EACH(NULL, destroy)
