/* The runtime's calls end in calls of the driver, which CUPTI records first, with the same number. */
#include "cupti/call_records.h"

#include "core/log.h"
#include "core/strbuf.h"

#include <stdatomic.h>

#define MOST_LAUNCHES 16 /* calls of the driver that launch kernels */
/* Leave launches out once this many in a row, since a kernel's handle was last given out, were parts of calls of the
 * runtime. */
#define ENOUGH 2000
/* While launches are not recorded, one call of kprof_call_records_save in this many records them, to see who launches.
 * */
#define CHECK_PERIOD 20
#define FIRST_CHECK  4

/* The driver's calls that have the GPU do something, wait for it, or take long. Others only ask. */
static const char *const driver_calls[] = {
    "cuLaunch",    "cuGraphLaunch",    "cuGraphInstantiate", "cuGraphUpload",   "cuMemcpy",
    "cuMemset",    "cuMemAlloc",       "cuMemFree",          "cuMemHostAlloc",  "cuMemHostRegister",
    "cuMemCreate", "cuMemMap",         "cuMemUnmap",         "cuMemPrefetch",   "cuStreamSynchronize",
    "cuEventSync", "cuCtxSynchronize", "cuStreamWaitEvent",  "cuEventRecord",   "cuModuleLoad",
    "cuModuleUn",  "cuLibraryLoad",    "cuStreamCreate",     "cuStreamDestroy", "cuMulticast",
    NULL};

/* Calls of the runtime that only ask, or that compilers add. Frameworks make several of them for each launch, which
 * itself is __cudaLaunchKernel in programs that CUDA 13 has compiled. */
static const char *const runtime_questions[] = {
    "cudaGetDevice",  "cudaSetDevice",        "cudaGetLastError",   "cudaPeekAtLastError", "cudaDeviceGet",
    "cudaEventQuery", "cudaStreamQuery",      "cudaStreamIsCaptur", "cudaStreamGet",       "cudaOccupancy",
    "cudaFuncGet",    "cudaPointerGet",       "cudaThreadExchange", "__cudaPush",          "__cudaPop",
    "__cudaRegister", "__cudaUnregister",     "__cudaInit",         "__cudaGet",           "cudaDriverGet",
    "cudaRuntimeGet", "cudaEventElapsedTime", "cudaGetErrorString", "cudaGetErrorName",    NULL};

/* Calls that give a kernel's handle. The runtime makes the latter two itself at a kernel's first launch. */
static const CUpti_CallbackId driver_handles[] = {
    CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction,           CUPTI_DRIVER_TRACE_CBID_cuModuleEnumerateFunctions,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryEnumerateKernels,     CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeGetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeGetParams_v2, CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel,
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction,           0};
static const CUpti_CallbackId runtime_handles[] = {CUPTI_RUNTIME_TRACE_CBID_cudaGetFuncBySymbol_v11000,
                                                   CUPTI_RUNTIME_TRACE_CBID_cudaGetKernel_v12000,
                                                   CUPTI_RUNTIME_TRACE_CBID_cudaLibraryGetKernel_v12060,
                                                   CUPTI_RUNTIME_TRACE_CBID_cudaLibraryEnumerateKernels_v12060, 0};

typedef struct waiting_call {
    kprof_call_activity call;
    bool is_used, launches;
} waiting_call;

static struct {
    const kprof_cupti_api *cupti;
    waiting_call waiting[KPROF_CALL_RECORDS_WAITING]; /* by their threads */
    CUpti_CallbackId launches[MOST_LAUNCHES];
    size_t launch_count;
    atomic_uint nested;    /* launches that were parts of calls of the runtime, in a row */
    atomic_bool is_direct; /* somebody launches through the driver, or may: record all from now on */
    atomic_bool is_saving, has_saved;
    bool is_checking; /* while it is saving; with the next one of kprof_call_records_save alone */
    unsigned saves;   /* since it began */
} records;

static bool begins_with_one(const kprof_cupti_api *cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                            const char *const *starts)
{
    const char *known = NULL;
    return cupti->cuptiGetCallbackName(domain, id, &known) == CUPTI_SUCCESS && known &&
           kprof_begins_with_one(known, starts);
}

bool kprof_call_records_tell(const kprof_cupti_api *cupti, CUpti_CallbackId id)
{
    return begins_with_one(cupti, CUPTI_CB_DOMAIN_DRIVER_API, id, driver_calls);
}

static void choose_driver_call(CUpti_CallbackId id)
{
    static const char *const launches[] = {"cuLaunchKernel", "cuLaunchCooperativeKernel", NULL};
    (void)records.cupti->cuptiActivityEnableDriverApi(id, 1);
    if (records.launch_count < MOST_LAUNCHES &&
        begins_with_one(records.cupti, CUPTI_CB_DOMAIN_DRIVER_API, id, launches))
        records.launches[records.launch_count++] = id;
}

void kprof_call_records_choose(const kprof_cupti_api *cupti)
{
    records.cupti = cupti;
    records.launch_count = 0;
    atomic_store(&records.nested, 0);
    atomic_store(&records.is_direct, false);
    atomic_store(&records.is_saving, false);
    atomic_store(&records.has_saved, false);
    for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; id++)
        if (kprof_call_records_tell(cupti, id))
            choose_driver_call(id);
    for (CUpti_CallbackId id = 1; id < CUPTI_RUNTIME_TRACE_CBID_SIZE; id++)
        if (begins_with_one(cupti, CUPTI_CB_DOMAIN_RUNTIME_API, id, runtime_questions))
            (void)cupti->cuptiActivityEnableRuntimeApi(id, 0);
}

/* Have CUPTI record the driver's calls that launch from now on, or not. Another thread may ask for the opposite; the
 * last request holds. */
static void record_launches(bool are_recorded)
{
    for (size_t i = 0; i < records.launch_count; i++)
        (void)records.cupti->cuptiActivityEnableDriverApi(records.launches[i], are_recorded);
}

/* Record all again, if that is not done. */
static void stop_saving(void)
{
    if (!atomic_exchange(&records.is_saving, false))
        return;
    record_launches(true);
    kprof_log(KPROF_LOG_DEBUG, "calls of the driver that launch are recorded again");
}

/* Record all from now on. False: they are already. */
static bool note_direct(const char *why, unsigned id)
{
    const bool is_new = !atomic_exchange(&records.is_direct, true);
    if (is_new)
        kprof_log(KPROF_LOG_DEBUG, "calls of the driver that launch are recorded all the time: %s %u", why, id);
    return is_new;
}

/* The next record in its slot tells which of these a call of the driver is. */
typedef enum fate { ALONE, PART_OF_CALL, PART_BESIDE_OTHERS } fate;

static fate look_back(const kprof_call_activity *before, const kprof_call_activity *call, bool is_driver)
{
    if (before->thread != call->thread || before->correlation != call->correlation)
        return ALONE;
    if (is_driver)
        return PART_BESIDE_OTHERS;
    /* A call in which CUPTI begins or ends to record it lacks one of its times. */
    const bool begins_within = before->start_ns >= call->start_ns && before->start_ns <= call->end_ns,
               ends_within = before->end_ns >= call->start_ns && before->end_ns <= call->end_ns;
    return begins_within || ends_within ? PART_OF_CALL : ALONE;
}

static void note_launch(const kprof_call_activity *before, fate of)
{
    if (of == PART_OF_CALL)
        atomic_fetch_add(&records.nested, 1);
    else if (of == ALONE && !atomic_load(&records.has_saved))
        atomic_store(&records.nested, 0);
    else if (of == ALONE && note_direct("one was no part of a call of the runtime; thread", (unsigned)before->thread))
        kprof_log(KPROF_LOG_WARNING, "the program launches kernels through the driver, too: the trace may lack some of "
                                     "these calls, but no kernel");
}

size_t kprof_call_records_sort(const kprof_call_activity *call, const CUpti_ActivityAPI *record,
                               kprof_call_activity out[2])
{
    const bool is_driver = record->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    waiting_call *slot = &records.waiting[(uint64_t)call->thread % KPROF_CALL_RECORDS_WAITING];
    size_t count = 0;
    if (slot->is_used) {
        const fate of = look_back(&slot->call, call, is_driver);
        if (slot->launches && slot->call.thread == call->thread)
            note_launch(&slot->call, of);
        if (of == ALONE)
            out[count++] = slot->call;
    }
    *slot = (waiting_call){*call, is_driver,
                           is_driver && KPROF_ANY(i, records.launch_count, records.launches[i] == record->cbid)};
    if (!is_driver)
        out[count++] = *call;
    return count;
}

size_t kprof_call_records_rest(kprof_call_activity *out)
{
    size_t count = 0;
    for (size_t i = 0; i < KPROF_CALL_RECORDS_WAITING; i++) {
        if (records.waiting[i].is_used)
            out[count++] = records.waiting[i].call;
        records.waiting[i].is_used = false;
    }
    return count;
}

const CUpti_CallbackId *kprof_call_records_handles(CUpti_CallbackDomain domain)
{
    return domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_handles : runtime_handles;
}

void kprof_call_records_note_handle(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    const CUpti_CallbackId *handle = kprof_call_records_handles(domain);
    while (*handle && *handle != id)
        handle++;
    if (!*handle)
        return;
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API ||
        (id != CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel && id != CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction))
        (void)note_direct("a kernel's handle was asked for by call", id);
    atomic_store(&records.nested, 0);
    stop_saving();
}

/* A thread that gets a handle says so first, and then looks whether launches are left out. */
static bool may_save(void)
{
    return !atomic_load(&records.is_direct) && atomic_load(&records.nested) >= ENOUGH;
}

static void leave_out(void)
{
    record_launches(false);
    if (!atomic_load(&records.is_saving)) /* somebody has got a handle, and recorded them before that */
        record_launches(true);
    if (!may_save())
        stop_saving();
}

/* Look now and then whether the program still launches through the runtime alone. */
static void check_now_and_then(void)
{
    records.saves++;
    if (records.is_checking)
        leave_out();
    records.is_checking = !records.is_checking && records.saves % CHECK_PERIOD == FIRST_CHECK;
    if (records.is_checking)
        record_launches(true);
}

bool kprof_call_records_save(void)
{
    if (!may_save()) {
        stop_saving();
        return !atomic_load(&records.is_direct);
    }
    if (atomic_exchange(&records.is_saving, true)) {
        check_now_and_then();
        return true;
    }
    kprof_log(KPROF_LOG_DEBUG, "calls of the driver that launch are parts of calls of the runtime, and not recorded");
    atomic_store(&records.has_saved, true);
    records.saves = 0;
    records.is_checking = false;
    leave_out();
    return true;
}
