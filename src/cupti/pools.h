/* Memory pools of the application. While a batch is open, a pool keeps what is freed to it, as replays use that memory:
 * the driver would give it back to the system when the host next waits. Thread-safe. */
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <stdbool.h>

/* Does the pool that has the memory at the address keep now what is freed to it? */
bool kprof_pools_keep(CUdeviceptr address);
/* Have that pool keep it until _let_go. False where the memory is of no pool or the driver refuses. */
bool kprof_pools_hold(CUdeviceptr address);
/* Do pools keep memory, because of _hold, that the application has not asked them to keep? */
bool kprof_pools_are_held(void);
/* Have the pools keep again what the application has asked for. `is_idle`: the GPU does not use freed memory any more,
 * so give it back at once; else the driver does when the host next waits. */
void kprof_pools_let_go(bool is_idle);
/* The application is about to destroy the pool. If memory of it is in use, another pool takes its place in the call. */
void kprof_pools_let_outlive(CUmemoryPool *pool);
/* A context ends, perhaps with its device's pools: stop asking about those that were to outlive their destruction. */
void kprof_pools_forget(void);
/* A call of the application succeeded. If it told a pool what to keep, _let_go leaves that pool alone. */
void kprof_pools_note(CUpti_CallbackId id, const void *parameters);
