/* The activities of CUDA as they happen: kernels, copies, sets, memory, calls and graphs, from CUPTI's activity
 * records, but for memory. CUPTI fills kprof's buffers in the application's threads, and hands them back in its own. */
#pragma once

#include "core/activities.h"
#include "core/status.h"

#include <stdbool.h>

/* This kernel of kprof's, of blocks.cu, runs behind a launch in its stream. */
#define KPROF_FOLLOWER "kprof_follow"

/* Takes activities. Called in any thread, by one thread at a time. */
typedef struct kprof_activity_sink {
    /* Return a number for a text, for later activities to use; 0: it cannot be kept. */
    int64_t (*name)(const char *text, bool is_mangled);
    void (*take)(const kprof_activity *activity);
    /* A buffer was read to its end. CUPTI lost `dropped` activities before, and kprof cannot read `unknown`. */
    void (*end)(uint64_t dropped, uint64_t unknown);
} kprof_activity_sink;

/* Have CUPTI record these. */
typedef enum kprof_activity_scope {
    KPROF_ACTIVITIES_OF_NODES,   /* all activities; each kernel and copy of a graph is one */
    KPROF_ACTIVITIES_OF_GRAPHS,  /* the same, but each graph is one */
    KPROF_ACTIVITIES_OF_KERNELS, /* kernels alone, those of graphs too */
} kprof_activity_scope;

/* Have CUPTI record activities from now on, once in a process. UNSUPPORTED when
 * CUPTI refuses: another tool may record them already. */
kprof_status kprof_activities_start(const kprof_activity_sink *sink, kprof_activity_scope scope) KPROF_MUST_CHECK;
/* Also record how managed memory moves, and page faults, from now on: once, after CUDA has begun. UNSUPPORTED where the
 * GPUs or CUPTI do not tell. */
kprof_status kprof_activities_follow_managed(void) KPROF_MUST_CHECK;
/* Hand over the activities that have ended. Return how many buffers CUPTI keeps, as an activity in them goes on. Waits
 * for no work on the GPU; not to be called while a stream or context is being destroyed. */
size_t kprof_activities_flush(void);
/* Hand over those, too, that had not ended as all contexts of the process came to be in error; CUPTI then knows the
 * times of none of them. Return how many buffers it keeps: all, where a context still works. */
size_t kprof_activities_flush_failed(void);
/* Note that a context (CUcontext) was made, or ends. */
void kprof_activities_note_context(void *context, bool ends);
/* Leave out what runs in this stream (CUcontext, CUstream), which is kprof's own and has just been made. */
void kprof_activities_leave_out(void *context, void *stream);
/* Record no activity of the GPU until it is called with false: records of kernels make
 * counters of passes wrong, and counters of instructions 0. Calls are recorded all the time. */
void kprof_activities_pause(bool pauses);
/* Have CUPTI record fewer calls, where it records some twice (call_records.h). Not in a callback of CUPTI's. Returns
 * whether a later call may be of use. */
bool kprof_activities_save(void);
/* Does somebody want to know of memory that is allocated and freed? */
bool kprof_activities_want_memory(void);
/* Record now that memory was allocated or freed, in a call that has just returned. Its time, operation and memory are
 * filled in here; `kind` is "Device", "Managed" or "Pinned". CUPTI's own records of that, and those of waits, take 6 us
 * each for each launch of PyTorch, on an H200. */
void kprof_activities_note_memory(const kprof_memory_activity *memory, bool allocates, const char *kind);
/* The time on the clock of activities; 0 where nothing is recorded. */
int64_t kprof_activities_now_ns(void);
