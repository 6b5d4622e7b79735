/* Numbers of graph nodes, as callbacks of several threads keep and forget them. */
#include "cupti/node_notes.h"
#include "test.h"

#include <stdlib.h>

static char nodes[5000];

TEST(numbers_are_kept_until_they_are_forgotten)
{
    assert_int_equal(kprof_node_notes_find(&nodes[0]), 0);
    for (uint32_t i = 0; i < sizeof nodes; i++)
        kprof_node_notes_set(&nodes[i * 7 % sizeof nodes], i + 1);
    for (uint32_t i = 0; i < sizeof nodes; i++)
        assert_int_equal(kprof_node_notes_find(&nodes[i * 7 % sizeof nodes]), i + 1);
    kprof_node_notes_set(&nodes[3], 9);
    assert_int_equal(kprof_node_notes_find(&nodes[3]), 9);
    for (uint32_t i = 0; i < sizeof nodes; i += 2)
        kprof_node_notes_set(&nodes[i], 0);
    kprof_node_notes_set(&nodes[0], 0); /* again */
    for (uint32_t i = 0; i < sizeof nodes; i++)
        assert_int_equal(kprof_node_notes_find(&nodes[i]) > 0, i % 2);
}

TEST(too_many_get_none)
{
    char *many = malloc(KPROF_NODE_NOTES_MAX + 1);
    assert_non_null(many);
    for (size_t i = 0; i <= KPROF_NODE_NOTES_MAX; i++)
        kprof_node_notes_set(&many[i], 1);
    assert_int_equal(kprof_node_notes_find(&many[0]), 1);
    assert_int_equal(kprof_node_notes_find(&many[KPROF_NODE_NOTES_MAX]), 0);
    for (size_t i = 0; i <= KPROF_NODE_NOTES_MAX; i++)
        kprof_node_notes_set(&many[i], 0);
    kprof_node_notes_set(&many[KPROF_NODE_NOTES_MAX], 5);
    assert_int_equal(kprof_node_notes_find(&many[KPROF_NODE_NOTES_MAX]), 5);
    free(many);
}
