/* Reads the calls that set or copy memory. Their forms for per-thread default streams have the same arguments. */
#include "cupti/calls.h"

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

/* A call and its other form: what it does, from `p`, its arguments. */
#define CALL(name, suffix, ...)                                                                                        \
    case ID(name##suffix):                                                                                             \
        *per_thread = true;                                                                                            \
        __attribute__((fallthrough));                                                                                  \
    case ID(name): {                                                                                                   \
        const name##_params *p = parameters;                                                                           \
        *out = (kprof_transfer){__VA_ARGS__};                                                                          \
        return true;                                                                                                   \
    }

#define ROW(field, bytes)  p->dstDevice, 0, p->field, bytes, 0, p->N, 1
#define ROWS(field, bytes) p->dstDevice, 0, p->field, bytes, p->dstPitch, p->Width, p->Height
#define COPY(to, from)     p->to, p->from, 0, 0, 0, p->ByteCount, 1

static bool read_call(CUpti_CallbackId id, const void *parameters, kprof_transfer *out, bool *per_thread)
{
    switch (id) {
        CALL(cuMemsetD8_v2, _ptds, ROW(uc, 1), NULL)
        CALL(cuMemsetD16_v2, _ptds, ROW(us, 2), NULL)
        CALL(cuMemsetD32_v2, _ptds, ROW(ui, 4), NULL)
        CALL(cuMemsetD2D8_v2, _ptds, ROWS(uc, 1), NULL)
        CALL(cuMemsetD2D16_v2, _ptds, ROWS(us, 2), NULL)
        CALL(cuMemsetD2D32_v2, _ptds, ROWS(ui, 4), NULL)
        CALL(cuMemsetD8Async, _ptsz, ROW(uc, 1), p->hStream)
        CALL(cuMemsetD16Async, _ptsz, ROW(us, 2), p->hStream)
        CALL(cuMemsetD32Async, _ptsz, ROW(ui, 4), p->hStream)
        CALL(cuMemsetD2D8Async, _ptsz, ROWS(uc, 1), p->hStream)
        CALL(cuMemsetD2D16Async, _ptsz, ROWS(us, 2), p->hStream)
        CALL(cuMemsetD2D32Async, _ptsz, ROWS(ui, 4), p->hStream)
        CALL(cuMemcpy, _ptds, COPY(dst, src), NULL)
        CALL(cuMemcpyDtoD_v2, _ptds, COPY(dstDevice, srcDevice), NULL)
        CALL(cuMemcpyAsync, _ptsz, COPY(dst, src), p->hStream)
        CALL(cuMemcpyDtoDAsync_v2, _ptsz, COPY(dstDevice, srcDevice), p->hStream)
    default:
        return false;
    }
}

bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out)
{
    bool per_thread = false;
    if (!read_call(id, parameters, out, &per_thread))
        return false;
    if (per_thread && !out->stream)
        out->stream = CU_STREAM_PER_THREAD;
    return true;
}
