/* Keeps a number for nodes of CUDA graphs, from the call that makes a node to the one that ends it. Thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* More nodes get no number: a program may forget to end its graphs. */
#define KPROF_NODE_NOTES_MAX ((size_t)1 << 18)

/* Keep a number for a node; 0 forgets it. Nothing happens when out of memory. */
void kprof_node_notes_set(const void *node, uint32_t number);
/* The number of a node; 0: none is kept. */
uint32_t kprof_node_notes_find(const void *node);
