/* Takes the launches and transfers of a graph into the batch: all of them or none. Hold the gate. */
#pragma once

#include "inject/batch/stages.h"

/* The launches and transfers of one call, in an order that keeps their dependencies. */
typedef struct kprof_graph_launches {
    const kprof_batch_launch *items;
    size_t count;
} kprof_graph_launches;

/* See kprof_batch_enter_all. */
bool kprof_graph_join(kprof_batch *batch, kprof_graph_launches launches, kprof_status *status);
