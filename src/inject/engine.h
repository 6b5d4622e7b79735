/* All that the injection library keeps in a process, but for what each thread has of its own. Every part is declared in
 * the header of the file that uses it, and touched there only. There are two exceptions: the configuration and the
 * counters of `process`, and `batch`, which is that of the files named in batch_private.h. */
#ifndef KPROF_INJECT_ENGINE_H
#define KPROF_INJECT_ENGINE_H

#include "cupti/device_ops.h"
#include "inject/batch_private.h"
#include "inject/captures.h"
#include "inject/contexts.h"
#include "inject/devices.h"
#include "inject/ending.h"
#include "inject/evaluate.h"
#include "inject/gate.h"
#include "inject/idle.h"
#include "inject/kernels.h"
#include "inject/launch.h"
#include "inject/lock.h"
#include "inject/nvtx.h"
#include "inject/preload.h"
#include "inject/process.h"
#include "inject/wait.h"

#define KPROF_CACHE_LINE 64

struct kprof_engine {
    const kprof_device_ops *device; /* set before anything else is called */
    kprof_process process;
    kprof_launch_state launches;
    kprof_open_batch batch;
    /* Every driver call writes to the gate: what the calls only read must not share its cache line. */
    _Alignas(KPROF_CACHE_LINE) kprof_gate gate;
    _Alignas(KPROF_CACHE_LINE) kprof_kernel_table kernels;
    kprof_captures captures;
    kprof_context_list contexts;
    kprof_device_list devices;
    kprof_ending ending;
    kprof_evaluator evaluator;
    kprof_idle idle;
    kprof_lock lock;
    kprof_nvtx_state nvtx;
    kprof_preload preload;
    kprof_waits waits;
};

/* The one of the process. */
extern struct kprof_engine kprof_engine;

#endif
