/* A short list. A capture also ends with its stream or context: if kprof took it for open, it would measure nothing. */
#include "cupti/capturing.h"

#include "core/hold.h"
#include "cupti/calls.h"

#include <pthread.h>
#include <stdatomic.h>

#define MOST_LISTED 64
#define ID(name)    CUPTI_DRIVER_TRACE_CBID_##name

typedef struct capture {
    CUstream stream;
    const void *context; /* that was current as it began */
    pthread_t thread;    /* that began it: each has a default stream of its own */
} capture;

static struct {
    pthread_mutex_t mutex;
    capture captures[MOST_LISTED]; /* [listed] */
    int listed, unlisted;          /* unlisted: captures that the list has no space for */
    atomic_int count;              /* of both */
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Both forms of a call have the same arguments, and the default stream of one is that of its thread. This does not use
 * ID(): the driver's header would put another name in the place of one. */
#define STREAM(name)                                                                                                   \
    case CUPTI_DRIVER_TRACE_CBID_##name:                                                                               \
        return ((const name##_params *)parameters)->hStream;                                                           \
    case CUPTI_DRIVER_TRACE_CBID_##name##_ptsz: {                                                                      \
        CUstream given = ((const name##_ptsz_params *)parameters)->hStream;                                            \
        return given ? given : CU_STREAM_PER_THREAD;                                                                   \
    }

/* The stream of a call that begins a capture, or ends one in whatever way. */
static CUstream find_stream(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
        STREAM(cuStreamBeginCapture)
        STREAM(cuStreamBeginCapture_v2)
        STREAM(cuStreamBeginCaptureToGraph)
        STREAM(cuStreamEndCapture)
    case ID(cuStreamDestroy):
        return ((const cuStreamDestroy_params *)parameters)->hStream;
    case ID(cuStreamDestroy_v2):
        return ((const cuStreamDestroy_v2_params *)parameters)->hStream;
    default:
        return NULL;
    }
}

static void begin(CUstream stream, const void *context)
{
    KPROF_HOLD(list.mutex);
    if (list.listed < MOST_LISTED)
        list.captures[list.listed++] = (capture){stream, context, pthread_self()};
    else
        list.unlisted++;
    atomic_fetch_add(&list.count, 1);
}

static bool is_of(const capture *c, CUstream stream)
{
    return c->stream == stream && (stream != CU_STREAM_PER_THREAD || pthread_equal(c->thread, pthread_self()));
}

static bool is_listed(CUstream stream)
{
    KPROF_HOLD(list.mutex);
    for (int i = 0; i < list.listed; i++)
        if (is_of(&list.captures[i], stream))
            return true;
    return false;
}

/* `is_end`: the call certainly ends a capture: one of the list, or else one that is not listed. */
static void end(CUstream stream, bool is_end)
{
    KPROF_HOLD(list.mutex);
    int before = list.listed;
    for (int i = list.listed; i-- > 0;)
        if (is_of(&list.captures[i], stream))
            list.captures[i] = list.captures[--list.listed];
    if (list.listed == before && is_end && list.unlisted > 0)
        list.unlisted--;
    atomic_store(&list.count, list.listed + list.unlisted);
}

void kprof_capturing_note(CUpti_CallbackId id, const void *parameters, const void *context, CUresult result)
{
    bool succeeded = result == CUDA_SUCCESS;
    CUstream stream = find_stream(id, parameters);
    if (!stream || result == CUDA_ERROR_NOT_INITIALIZED) /* as in a forked child, where locks may be held for ever */
        return;
    switch (id) {
    case ID(cuStreamEndCapture):
    case ID(cuStreamEndCapture_ptsz):
        /* Ending a capture that went wrong ends it all the same; a call of the wrong thread does not. */
        if (succeeded || (is_listed(stream) && !kprof_stream_is_captured(stream)))
            end(stream, succeeded);
        break;
    case ID(cuStreamDestroy):
    case ID(cuStreamDestroy_v2):
        if (succeeded)
            end(stream, false);
        break;
    default:
        if (succeeded)
            begin(stream, context);
    }
}

void kprof_capturing_forget(const void *context)
{
    KPROF_HOLD(list.mutex);
    for (int i = list.listed; i-- > 0;)
        if (list.captures[i].context == context)
            list.captures[i] = list.captures[--list.listed];
    atomic_store(&list.count, list.listed + list.unlisted);
}

bool kprof_capturing(void)
{
    return atomic_load(&list.count) > 0;
}
