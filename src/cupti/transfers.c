/* Reads the calls that set or copy memory. */
#include "cupti/calls.h"

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name

/* Both forms of a call have the same arguments. */
static CUpti_CallbackId plain_form(CUpti_CallbackId id)
{
    switch (id) {
    case ID(cuMemsetD8_v2_ptds):
        return ID(cuMemsetD8_v2);
    case ID(cuMemsetD16_v2_ptds):
        return ID(cuMemsetD16_v2);
    case ID(cuMemsetD32_v2_ptds):
        return ID(cuMemsetD32_v2);
    case ID(cuMemsetD2D8_v2_ptds):
        return ID(cuMemsetD2D8_v2);
    case ID(cuMemsetD2D16_v2_ptds):
        return ID(cuMemsetD2D16_v2);
    case ID(cuMemsetD2D32_v2_ptds):
        return ID(cuMemsetD2D32_v2);
    case ID(cuMemsetD8Async_ptsz):
        return ID(cuMemsetD8Async);
    case ID(cuMemsetD16Async_ptsz):
        return ID(cuMemsetD16Async);
    case ID(cuMemsetD32Async_ptsz):
        return ID(cuMemsetD32Async);
    case ID(cuMemsetD2D8Async_ptsz):
        return ID(cuMemsetD2D8Async);
    case ID(cuMemsetD2D16Async_ptsz):
        return ID(cuMemsetD2D16Async);
    case ID(cuMemsetD2D32Async_ptsz):
        return ID(cuMemsetD2D32Async);
    case ID(cuMemcpy_ptds):
        return ID(cuMemcpy);
    case ID(cuMemcpyDtoD_v2_ptds):
        return ID(cuMemcpyDtoD_v2);
    case ID(cuMemcpyAsync_ptsz):
        return ID(cuMemcpyAsync);
    case ID(cuMemcpyDtoDAsync_v2_ptsz):
        return ID(cuMemcpyDtoDAsync_v2);
    default:
        return id;
    }
}

static bool read_call(CUpti_CallbackId id, const void *parameters, kprof_transfer *out)
{
    switch (id) {
    case ID(cuMemsetD8_v2): {
        const cuMemsetD8_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->uc, 1, 0, p->N, 1, NULL};
        return true;
    }
    case ID(cuMemsetD16_v2): {
        const cuMemsetD16_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->us, 2, 0, p->N, 1, NULL};
        return true;
    }
    case ID(cuMemsetD32_v2): {
        const cuMemsetD32_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->ui, 4, 0, p->N, 1, NULL};
        return true;
    }
    case ID(cuMemsetD2D8_v2): {
        const cuMemsetD2D8_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->uc, 1, p->dstPitch, p->Width, p->Height, NULL};
        return true;
    }
    case ID(cuMemsetD2D16_v2): {
        const cuMemsetD2D16_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->us, 2, p->dstPitch, p->Width, p->Height, NULL};
        return true;
    }
    case ID(cuMemsetD2D32_v2): {
        const cuMemsetD2D32_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->ui, 4, p->dstPitch, p->Width, p->Height, NULL};
        return true;
    }
    case ID(cuMemsetD8Async): {
        const cuMemsetD8Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->uc, 1, 0, p->N, 1, p->hStream};
        return true;
    }
    case ID(cuMemsetD16Async): {
        const cuMemsetD16Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->us, 2, 0, p->N, 1, p->hStream};
        return true;
    }
    case ID(cuMemsetD32Async): {
        const cuMemsetD32Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->ui, 4, 0, p->N, 1, p->hStream};
        return true;
    }
    case ID(cuMemsetD2D8Async): {
        const cuMemsetD2D8Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->uc, 1, p->dstPitch, p->Width, p->Height, p->hStream};
        return true;
    }
    case ID(cuMemsetD2D16Async): {
        const cuMemsetD2D16Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->us, 2, p->dstPitch, p->Width, p->Height, p->hStream};
        return true;
    }
    case ID(cuMemsetD2D32Async): {
        const cuMemsetD2D32Async_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, 0, p->ui, 4, p->dstPitch, p->Width, p->Height, p->hStream};
        return true;
    }
    case ID(cuMemcpy): {
        const cuMemcpy_params *p = parameters;
        *out = (kprof_transfer){p->dst, p->src, 0, 0, 0, p->ByteCount, 1, NULL};
        return true;
    }
    case ID(cuMemcpyDtoD_v2): {
        const cuMemcpyDtoD_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, p->srcDevice, 0, 0, 0, p->ByteCount, 1, NULL};
        return true;
    }
    case ID(cuMemcpyAsync): {
        const cuMemcpyAsync_params *p = parameters;
        *out = (kprof_transfer){p->dst, p->src, 0, 0, 0, p->ByteCount, 1, p->hStream};
        return true;
    }
    case ID(cuMemcpyDtoDAsync_v2): {
        const cuMemcpyDtoDAsync_v2_params *p = parameters;
        *out = (kprof_transfer){p->dstDevice, p->srcDevice, 0, 0, 0, p->ByteCount, 1, p->hStream};
        return true;
    }
    default:
        return false;
    }
}

bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out)
{
    CUpti_CallbackId plain = plain_form(id);
    if (!read_call(plain, parameters, out))
        return false;
    if (plain != id && !out->stream)
        out->stream = CU_STREAM_PER_THREAD;
    return true;
}
