/* NVTX's own headers and kprof's copy of what they agree on: the same numbers and layout, and calls that arrive. */
#include "inject/nvtx.h"
#include "inject/nvtx_abi.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "test.h"

#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#define SAME_ID(list, theirs, ours) _Static_assert((int)NVTX_CBID_##list##_##theirs == (int)KPROF_NVTX_##ours, #theirs)
#define SAME_PLACE(theirs, ours)                                                                                       \
    _Static_assert(offsetof(nvtxEventAttributes_t, theirs) == offsetof(kprof_nvtx_event, ours), #theirs)

SAME_ID(CORE, RangeStartEx, RANGE_START_EX);
SAME_ID(CORE, RangeStartA, RANGE_START_A);
SAME_ID(CORE, RangeStartW, RANGE_START_W);
SAME_ID(CORE, RangeEnd, RANGE_END);
SAME_ID(CORE, RangePushEx, RANGE_PUSH_EX);
SAME_ID(CORE, RangePushA, RANGE_PUSH_A);
SAME_ID(CORE, RangePushW, RANGE_PUSH_W);
SAME_ID(CORE, RangePop, RANGE_POP);
SAME_ID(CORE, MarkEx, MARK_EX);
SAME_ID(CORE, MarkA, MARK_A);
SAME_ID(CORE, MarkW, MARK_W);
SAME_ID(CORE2, DomainRangeStartEx, DOMAIN_RANGE_START_EX);
SAME_ID(CORE2, DomainRangeEnd, DOMAIN_RANGE_END);
SAME_ID(CORE2, DomainRangePushEx, DOMAIN_RANGE_PUSH_EX);
SAME_ID(CORE2, DomainRangePop, DOMAIN_RANGE_POP);
SAME_ID(CORE2, DomainMarkEx, DOMAIN_MARK_EX);
SAME_ID(CORE2, DomainRegisterStringA, DOMAIN_REGISTER_STRING_A);
SAME_ID(CORE2, DomainRegisterStringW, DOMAIN_REGISTER_STRING_W);
SAME_ID(CORE2, DomainCreateA, DOMAIN_CREATE_A);
SAME_ID(CORE2, DomainCreateW, DOMAIN_CREATE_W);
SAME_ID(CUDA, NameCuContextA, NAME_CU_CONTEXT_A);
SAME_ID(CUDA, NameCuContextW, NAME_CU_CONTEXT_W);
SAME_ID(CUDA, NameCuStreamA, NAME_CU_STREAM_A);
SAME_ID(CUDA, NameCuStreamW, NAME_CU_STREAM_W);
SAME_ID(CUDART, NameCudaStreamA, NAME_CUDA_STREAM_A);
SAME_ID(CUDART, NameCudaStreamW, NAME_CUDA_STREAM_W);
SAME_PLACE(size, size);
SAME_PLACE(messageType, message_type);
SAME_PLACE(message, message);
_Static_assert(sizeof(nvtxEventAttributes_t) == sizeof(kprof_nvtx_event), "event");
_Static_assert((int)NVTX_CB_MODULE_CORE == KPROF_NVTX_MODULE_CORE, "core");
_Static_assert((int)NVTX_CB_MODULE_CUDA == KPROF_NVTX_MODULE_CUDA, "driver");
_Static_assert((int)NVTX_CB_MODULE_CUDART == KPROF_NVTX_MODULE_CUDART, "runtime");
_Static_assert((int)NVTX_CB_MODULE_CORE2 == KPROF_NVTX_MODULE_CORE2, "core 2");
_Static_assert((int)NVTX_ETID_CALLBACKS == KPROF_NVTX_CALLBACKS, "callbacks");

/* In place of the engine's. */
uint32_t kprof_launch_stack(void)
{
    return 0;
}
_Static_assert((int)NVTX_MESSAGE_TYPE_ASCII == KPROF_NVTX_ASCII, "ascii");
_Static_assert((int)NVTX_MESSAGE_TYPE_UNICODE == KPROF_NVTX_UNICODE, "unicode");
_Static_assert((int)NVTX_MESSAGE_TYPE_REGISTERED == KPROF_NVTX_REGISTERED, "registered");
_Static_assert(sizeof(NvtxExportTableCallbacks) == sizeof(kprof_nvtx_callbacks), "table of callbacks");

int64_t kprof_trace_now_ns(void)
{
    return 0; /* nothing is traced */
}

void kprof_trace_follow(int begun) {}

void kprof_trace_lose_range(void) {}

void kprof_trace_take_range(const kprof_trace_range *range)
{
    fail_msg("%s is traced", range->name);
}

static int attach(NvtxGetExportTableFunc_t get_table)
{
    return kprof_nvtx_attach(get_table);
}

TEST(calls_arrive)
{
    InitializeInjectionNvtx2_fnptr = attach; /* in place of a library that NVTX_INJECTION64_PATH names */
    assert_int_equal(nvtxRangePushA("step"), 0);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("net");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message.registered = nvtxDomainRegisterStringA(domain, "conv")};
    nvtxDomainRangePushEx(domain, &event);
    nvtxRangeId_t id = nvtxRangeStartW(L"epoch");
    assert_string_equal(kprof_nvtx_text(), "net@conv/; step/; epoch");
    nvtxRangeEnd(id);
    nvtxMarkA("nothing to a launch");
    assert_int_equal(nvtxDomainRangePop(domain), 0);
    assert_int_equal(nvtxRangePop(), 0);
    nvtxDomainDestroy(domain);
    assert_string_equal(kprof_nvtx_text(), "");
}

int main(void)
{
    unsetenv("NVTX_INJECTION64_PATH");
    return run_all_tests();
}
