/* Captures of streams into graphs. kprof may synchronise nothing during one, so it can only give up an open batch. If
 * nothing ran beside earlier captures, batches stay open over the next ones. */
#pragma once

#include "cupti/target.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Why a launch has no values. */
#define KPROF_BESIDE_CAPTURE "a stream was being captured, and nothing may be synchronised meanwhile"

typedef struct kprof_captures {
    atomic_uint quiet;     /* captures in a row that nothing ran beside */
    atomic_bool disturbed; /* something ran beside the one that is under way */
    atomic_bool lossy;     /* a batch was given up in one */
} kprof_captures;

extern kprof_captures kprof_the_captures;

/* May a batch stay open over a capture that begins now? Not if kprof has lost one that way. */
bool kprof_captures_are_quiet(void);
/* A call that is not captured enters while a stream is captured. */
void kprof_captures_note_call(const kprof_call *call);
/* A capture has ended. */
void kprof_captures_note_end(void);
/* A batch is given up, as a capture is under way. */
void kprof_captures_note_loss(void);
