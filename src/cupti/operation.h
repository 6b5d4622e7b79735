/* A launch or a transfer kept for later: its arguments copied while the application's call is under way. */
#ifndef KPROF_CUPTI_OPERATION_H
#define KPROF_CUPTI_OPERATION_H

#include "cupti/target.h"

typedef struct kprof_operation kprof_operation;

/* Copy a launch or a transfer from inside its enter hook; NULL when it cannot be repeated: the arguments of a launch
 * cannot be copied, or its stream is another context's, which is logged, or a transfer reaches beyond the memory of its
 * context's device. */
kprof_operation *kprof_operation_copy(const kprof_call *call);
/* Run it on its stream; its context must be current. */
kprof_status kprof_operation_run(const kprof_operation *operation) KPROF_MUST_CHECK;
void kprof_operation_free(kprof_operation *operation);

/* Does an argument point to host memory, as far as arguments show? What a host thread may read or write at any time
 * must not be replayed later. */
bool kprof_operation_sees_host(const kprof_operation *operation);

#endif
