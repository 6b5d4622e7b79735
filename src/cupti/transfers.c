/* Reads the calls that set or copy memory. Their forms for per-thread default streams have the same arguments. */
#include "cupti/calls.h"

#define MOST_KEPT_BYTES ((size_t)256 << 20)
#define MOST_KEPT_ROWS  ((size_t)1 << 20) /* kprof lists each row to compare it */

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

#define ROW(field, bytes) KPROF_TRANSFER_SET, false, p->dstDevice, 0, p->field, bytes, 0, 0, p->N, 1
#define ROWS(field, bytes)                                                                                             \
    KPROF_TRANSFER_SET, false, p->dstDevice, 0, p->field, bytes, p->dstPitch, 0, p->Width, p->Height

#define COPY(waits, to, from) KPROF_TRANSFER_COPY, waits, p->to, p->from, 0, 0, 0, 0, p->ByteCount, 1
#define IN(waits)                                                                                                      \
    KPROF_TRANSFER_IN, waits, p->dstDevice, (CUdeviceptr)(uintptr_t)p->srcHost, 0, 0, 0, 0, p->ByteCount, 1
#define OUT(waits)                                                                                                     \
    KPROF_TRANSFER_OUT, waits, (CUdeviceptr)(uintptr_t)p->dstHost, p->srcDevice, 0, 0, 0, 0, p->ByteCount, 1

/* A copy of rows and its other form. `read`: read_rows or read_layers. */
#define COPY_ROWS(name, suffix, read, waits, stream)                                                                   \
    case ID(name##suffix):                                                                                             \
        *per_thread = true;                                                                                            \
        __attribute__((fallthrough));                                                                                  \
    case ID(name): {                                                                                                   \
        const name##_params *p = parameters;                                                                           \
        return p->pCopy && read(p->pCopy, waits, stream, out);                                                         \
    }

/* One side of a copy of rows. */
typedef struct copy_side {
    CUmemorytype type;
    CUdeviceptr address;
    size_t pitch_bytes;
} copy_side;

/* `row`: that of the whole memory that the copy begins in. */
#define SIDE(side, row)                                                                                                \
    {                                                                                                                  \
        .type = p->side##MemoryType,                                                                                   \
        .address =                                                                                                     \
            (p->side##MemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)p->side##Host : p->side##Device) +    \
            p->side##XInBytes + p->side##Pitch * (row),                                                                \
        .pitch_bytes = p->side##Pitch,                                                                                 \
    }

static bool is_plain(const copy_side *side, const kprof_transfer *t)
{
    bool is_array =
        side->type != CU_MEMORYTYPE_HOST && side->type != CU_MEMORYTYPE_DEVICE && side->type != CU_MEMORYTYPE_UNIFIED;
    return !is_array && (t->height <= 1 || side->pitch_bytes >= t->width);
}

/* Leave the kind open: the call may say that memory is the host's, although it is managed. */
static bool set_sides(kprof_transfer *t, const copy_side *to, const copy_side *from)
{
    t->kind = KPROF_TRANSFER_COPY;
    t->destination = to->address;
    t->source = from->address;
    t->pitch_bytes = to->pitch_bytes;
    t->source_pitch_bytes = from->pitch_bytes;
    return is_plain(to, t) && is_plain(from, t);
}

static bool read_rows(const CUDA_MEMCPY2D *p, bool waits, CUstream stream, kprof_transfer *out)
{
    const copy_side to = SIDE(dst, p->dstY), from = SIDE(src, p->srcY);
    *out = (kprof_transfer){.waits = waits, .width = p->WidthInBytes, .height = p->Height, .stream = stream};
    return set_sides(out, &to, &from);
}

/* Read a copy of one layer; kprof keeps no others. */
static bool read_layers(const CUDA_MEMCPY3D *p, bool waits, CUstream stream, kprof_transfer *out)
{
    const copy_side to = SIDE(dst, p->dstZ * p->dstHeight + p->dstY),
                    from = SIDE(src, p->srcZ * p->srcHeight + p->srcY);
    *out = (kprof_transfer){.waits = waits, .width = p->WidthInBytes, .height = p->Height, .stream = stream};
    return p->Depth == 1 && set_sides(out, &to, &from);
}

bool kprof_transfer_of_layers(const CUDA_MEMCPY3D *layers, kprof_transfer *out)
{
    return read_layers(layers, false, NULL, out);
}

size_t kprof_transfer_destination_bytes(const kprof_transfer *t)
{
    size_t width = t->width * (t->kind == KPROF_TRANSFER_SET ? t->element_bytes : 1);
    return width + t->pitch_bytes * (t->height - 1);
}

size_t kprof_transfer_source_bytes(const kprof_transfer *t)
{
    return t->width + t->source_pitch_bytes * (t->height - 1);
}

bool kprof_transfer_may_be_kept(const kprof_transfer *t)
{
    return t->height <= MOST_KEPT_ROWS && (t->height == 0 || t->width <= MOST_KEPT_BYTES / t->height);
}

kprof_value_operations kprof_call_value_operations(const CUstreamBatchMemOpParams *list, unsigned count)
{
    kprof_value_operations found = {0};
    for (unsigned i = 0; list && i < count; i++) {
        switch ((int)list[i].operation) { /* a newer driver may have others */
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            found.waits++;
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            found.writes++;
            found.last_write = i;
            break;
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
            break;
        default:
            found.others++;
            break;
        }
    }
    return found;
}

static kprof_transfer set_one(CUdeviceptr address, uint64_t value, size_t bytes, CUstream stream)
{
    return (kprof_transfer){.kind = KPROF_TRANSFER_SET,
                            .destination = address,
                            .value = value,
                            .element_bytes = bytes,
                            .width = 1,
                            .height = 1,
                            .stream = stream};
}

/* Read several operations on values in the order of a stream that write one and wait for none. */
static bool read_one_written(const void *parameters, kprof_transfer *out)
{
    const cuStreamBatchMemOp_v2_params *p = parameters;
    const kprof_value_operations operations = kprof_call_value_operations(p->paramArray, p->count);
    if (operations.writes != 1 || operations.waits > 0 || operations.others > 0)
        return false;
    const CUstreamBatchMemOpParams *write = &p->paramArray[operations.last_write];
    const bool is_long = write->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    *out = set_one(write->writeValue.address, is_long ? write->writeValue.value64 : write->writeValue.value,
                   is_long ? 8 : 4, p->stream);
    return true;
}

/* A value that is written to memory in the order of a stream. All versions of the call have the same arguments. */
static bool read_written(CUpti_CallbackId id, const void *parameters, kprof_transfer *out, bool *per_thread)
{
    const cuStreamWriteValue32_v2_params *short_one = parameters;
    const cuStreamWriteValue64_v2_params *long_one = parameters;
    switch (id) {
    case ID(cuStreamWriteValue32_ptsz):
    case ID(cuStreamWriteValue32_v2_ptsz):
        *per_thread = true;
        __attribute__((fallthrough));
    case ID(cuStreamWriteValue32):
    case ID(cuStreamWriteValue32_v2):
        *out = set_one(short_one->addr, short_one->value, 4, short_one->stream);
        return true;
    case ID(cuStreamWriteValue64_ptsz):
    case ID(cuStreamWriteValue64_v2_ptsz):
        *per_thread = true;
        __attribute__((fallthrough));
    case ID(cuStreamWriteValue64):
    case ID(cuStreamWriteValue64_v2):
        *out = set_one(long_one->addr, long_one->value, 8, long_one->stream);
        return true;
    case ID(cuStreamBatchMemOp_ptsz):
    case ID(cuStreamBatchMemOp_v2_ptsz):
        *per_thread = true;
        __attribute__((fallthrough));
    case ID(cuStreamBatchMemOp):
    case ID(cuStreamBatchMemOp_v2):
        return read_one_written(parameters, out);
    default:
        return false;
    }
}

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
        CALL(cuMemcpy, _ptds, COPY(true, dst, src), NULL)
        CALL(cuMemcpyDtoD_v2, _ptds, COPY(true, dstDevice, srcDevice), NULL)
        CALL(cuMemcpyHtoD_v2, _ptds, IN(true), NULL)
        CALL(cuMemcpyDtoH_v2, _ptds, OUT(true), NULL)
        CALL(cuMemcpyAsync, _ptsz, COPY(false, dst, src), p->hStream)
        CALL(cuMemcpyDtoDAsync_v2, _ptsz, COPY(false, dstDevice, srcDevice), p->hStream)
        CALL(cuMemcpyHtoDAsync_v2, _ptsz, IN(false), p->hStream)
        CALL(cuMemcpyDtoHAsync_v2, _ptsz, OUT(false), p->hStream)
        COPY_ROWS(cuMemcpy2D_v2, _ptds, read_rows, true, NULL)
        COPY_ROWS(cuMemcpy2DUnaligned_v2, _ptds, read_rows, true, NULL)
        COPY_ROWS(cuMemcpy2DAsync_v2, _ptsz, read_rows, false, p->hStream)
        COPY_ROWS(cuMemcpy3D_v2, _ptds, read_layers, true, NULL)
        COPY_ROWS(cuMemcpy3DAsync_v2, _ptsz, read_layers, false, p->hStream)
    default:
        return read_written(id, parameters, out, per_thread);
    }
}

/* At most, but for padding. */
static size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *of)
{
    if (!of)
        return 0;
    bool is_narrow = of->Format == CU_AD_FORMAT_UNSIGNED_INT8 || of->Format == CU_AD_FORMAT_SIGNED_INT8;
    size_t rows = of->Height ? of->Height : 1, layers = of->Depth ? of->Depth : 1;
    return of->Width * rows * layers * of->NumChannels * (is_narrow ? 1 : 4);
}

size_t kprof_allocation_bytes(CUpti_CallbackId id, const void *parameters)
{
    switch (id) {
    case ID(cuMemAlloc_v2):
        return ((const cuMemAlloc_v2_params *)parameters)->bytesize;
    case ID(cuMemAllocPitch_v2): {
        const cuMemAllocPitch_v2_params *p = parameters;
        return p->WidthInBytes * p->Height;
    }
    case ID(cuMemAllocAsync):
    case ID(cuMemAllocAsync_ptsz):
        return ((const cuMemAllocAsync_params *)parameters)->bytesize;
    case ID(cuMemAllocFromPoolAsync):
    case ID(cuMemAllocFromPoolAsync_ptsz):
        return ((const cuMemAllocFromPoolAsync_params *)parameters)->bytesize;
    case ID(cuMemCreate):
        return ((const cuMemCreate_params *)parameters)->size;
    case ID(cuArrayCreate_v2): {
        const CUDA_ARRAY_DESCRIPTOR *of = ((const cuArrayCreate_v2_params *)parameters)->pAllocateArray;
        return of ? array_bytes(&(CUDA_ARRAY3D_DESCRIPTOR){of->Width, of->Height, 1, of->Format, of->NumChannels, 0})
                  : 0;
    }
    case ID(cuArray3DCreate_v2):
        return array_bytes(((const cuArray3DCreate_v2_params *)parameters)->pAllocateArray);
    case ID(cuMipmappedArrayCreate): /* the smaller levels are a third of it at most, in one dimension as much */
        return 2 * array_bytes(((const cuMipmappedArrayCreate_params *)parameters)->pMipmappedArrayDesc);
    default:
        return 0;
    }
}

CUstream kprof_allocation_stream(CUpti_CallbackId id, const void *parameters)
{
    const bool of_pool = id == ID(cuMemAllocFromPoolAsync) || id == ID(cuMemAllocFromPoolAsync_ptsz);
    const bool per_thread = id == ID(cuMemAllocAsync_ptsz) || id == ID(cuMemAllocFromPoolAsync_ptsz);
    if (!of_pool && !per_thread && id != ID(cuMemAllocAsync))
        return NULL;
    const CUstream stream = of_pool ? ((const cuMemAllocFromPoolAsync_params *)parameters)->hStream
                                    : ((const cuMemAllocAsync_params *)parameters)->hStream;
    return stream ? stream : per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

bool kprof_call_transfer(CUpti_CallbackId id, const void *parameters, kprof_transfer *out)
{
    bool per_thread = false;
    kprof_transfer t;
    if (!read_call(id, parameters, &t, &per_thread))
        return false;
    if (per_thread && !t.stream)
        t.stream = CU_STREAM_PER_THREAD;
    *out = t;
    return true;
}
