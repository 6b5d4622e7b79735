/* Each operator that makes a node of the backward pass has the node's sequence number. Operators that make none have
 * the next number, so the last one of a number counts. Numbers of two threads do not. */
#include "inject/forward.h"

#include "core/hold.h"
#include "core/torch.h"
#include "inject/engine.h"
#include "inject/stacks.h"

#include <pthread.h>
#include <stdlib.h>

#define SLOTS                                                                                                          \
    ((size_t)1 << 16) /* a power of two, and more than one pass has operators; later ones replace earlier ones */

typedef struct operator
{
    uint64_t sequence;
    pthread_t thread;
    uint32_t stack; /* 0: there is none, or there are several */
}
operator;

static struct {
    pthread_mutex_t mutex;
    operator* operators; /* [SLOTS] */
} forward = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void keep(const operator* seen)
{
    KPROF_HOLD(forward.mutex);
    if (!forward.operators)
        forward.operators = calloc(SLOTS, sizeof *forward.operators);
    operator* slot = forward.operators ? &forward.operators[seen->sequence & (SLOTS - 1)] : NULL;
    const bool is_shared =
        slot && slot->stack > 0 && slot->sequence == seen->sequence && !pthread_equal(slot->thread, seen->thread);
    if (slot)
        *slot = *seen;
    if (is_shared)
        slot->stack = 0;
}

void kprof_forward_note(const char *range)
{
    if (kprof_engine.process.config.call_stack_type == 0 || !atomic_load(&kprof_engine.process.armed))
        return;
    const kprof_torch_range seen = kprof_torch_read(range);
    if (seen.kind != KPROF_TORCH_OPERATOR || !seen.has_sequence)
        return;
    keep(&(operator){seen.sequence, pthread_self(), kprof_launch_stack()});
}

uint32_t kprof_forward_find(uint64_t sequence)
{
    KPROF_HOLD(forward.mutex);
    const operator* slot = forward.operators ? &forward.operators[sequence & (SLOTS - 1)] : NULL;
    return slot && slot->sequence == sequence ? slot->stack : 0;
}
