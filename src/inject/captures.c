/* Counts captures that nothing ran beside. */
#include "inject/captures.h"

kprof_captures kprof_the_captures;

/* Each of them closes a batch. After this many kprof knows a program that captures at each step, as JAX does. */
#define ENOUGH_CAPTURES 3

bool kprof_captures_are_quiet(void)
{
    const kprof_captures *captures = &kprof_the_captures;
    return atomic_load(&captures->quiet) >= ENOUGH_CAPTURES && !atomic_load(&captures->lossy);
}

/* Would the call close an open batch, or have to join it? */
void kprof_captures_note_call(const kprof_call *call)
{
    switch (call->kind) {
    case KPROF_CALL_GRAPH_CHANGE:
    case KPROF_CALL_CAPTURE_END:
    case KPROF_CALL_MEMORY_INFO:
    case KPROF_CALL_SETUP:
    case KPROF_CALL_CODE:
    case KPROF_CALL_WAIT:
    case KPROF_CALL_HARMLESS:
    case KPROF_CALL_ORDER:
        break;
    default:
        atomic_store(&kprof_the_captures.disturbed, true);
    }
}

void kprof_captures_note_end(void)
{
    kprof_captures *captures = &kprof_the_captures;
    if (atomic_exchange(&captures->disturbed, false))
        atomic_store(&captures->quiet, 0);
    else if (atomic_load(&captures->quiet) < ENOUGH_CAPTURES)
        atomic_fetch_add(&captures->quiet, 1);
}

void kprof_captures_note_loss(void)
{
    atomic_store(&kprof_the_captures.lossy, true);
}
