/* Memory pools of the application. While a batch is open, a pool keeps what is freed to it, as replays use that memory:
 * the driver would give it back to the system when the host next waits. Thread-safe. */
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <stdbool.h>

/* Does the pool that has the memory at the address keep now what is freed to it? */
bool kprof_pools_keep(CUdeviceptr address);
/* Have that pool keep it until _let_go. False where the memory is of no pool, or of one that was destroyed, or the
 * driver refuses. */
bool kprof_pools_hold(CUdeviceptr address);
/* Do pools keep memory, because of _hold, that the application has not asked them to keep? */
bool kprof_pools_are_held(void);
/* Have the pools keep again what the application has asked for. `is_idle`: the GPU does not use freed memory any more,
 * so give it back at once; else the driver does when the host next waits. */
void kprof_pools_let_go(bool is_idle);
/* A call of the application succeeded. A pool that it destroys holds nothing from now on, as one that the driver
 * refuses to change: the driver is not called with its handle any more, until it gives that handle to a new pool. What
 * the application says a pool is to keep holds, and _let_go leaves that pool alone. */
void kprof_pools_note(CUpti_CallbackId id, const void *parameters);
