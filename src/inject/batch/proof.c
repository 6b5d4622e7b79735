/* Adds up the counters of what the SMs read and write outside their GPU. */
#include "inject/batch/proof.h"

#include "inject/batch/passes.h"
#include "inject/engine.h"
#include "inject/recording.h"

/* Bits: the launches of a range read memory outside their GPU, or wrote it. */
enum { READ = 1, WROTE = 2 /* or nothing tells which */ };

static kprof_status read_proof(const kprof_batch_state *state, kprof_reader *reader, size_t range, unsigned *did)
{
    double sectors[8];
    const kprof_strlist *names = &state->metrics->proof;
    const bool tells_reads = names->count > KPROF_PROOF_READS;
    *did = READ | WROTE;
    if (names->count == 0 || names->count > COUNT_OF(sectors))
        return kprof_fail(KPROF_UNSUPPORTED, "the chip has no counters for what reaches host memory");
    kprof_status status =
        kprof_engine.device->reader_read(reader, (kprof_range){state->context->profiler, range}, names, sectors);
    if (status != KPROF_OK)
        return status;
    if (tells_reads)
        sectors[0] -= sectors[KPROF_PROOF_READS];
    *did = tells_reads && !(sectors[KPROF_PROOF_READS] == 0) ? READ : 0; /* NaN is no proof */
    for (size_t i = 0; i < names->count; i++)
        *did |= i != KPROF_PROOF_READS && !(sectors[i] == 0) ? WROTE : 0;
    return KPROF_OK;
}

/* Did any launch of the batch reach such memory? Its ranges are the proof's. In lenient ranges the launch that the
 * batch stands behind may have read, and unread ones have nothing but that launch. */
static kprof_status read_whole_proof(kprof_batch_state *state, kprof_reader *reader, bool *reached)
{
    const kprof_batch_ranges *ranges = &state->ranges;
    kprof_status status = KPROF_OK;
    *reached = ranges->count == ranges->first;
    state->stayed_away = !*reached;
    for (size_t i = ranges->first; i < ranges->count && status == KPROF_OK && !*reached; i++) {
        const uint64_t bit = UINT64_C(1) << (i - ranges->first);
        unsigned did;
        status = read_proof(state, reader, i, &did);
        state->stayed_away = state->stayed_away && status == KPROF_OK && did == 0;
        *reached = !(ranges->unread & bit) && (did & (ranges->lenient & bit ? WROTE : READ | WROTE));
        if (ranges->unread & bit)
            status = KPROF_OK;
    }
    return status;
}

/* Several launches share a range, since one of them did not end in time. Return the kernel that must have reached
 * memory of the host: the only one that no proof has cleared. NULL: there is none, or several. */
static kprof_kernel *find_culprit(const kprof_launch_list *list, size_t first, size_t end)
{
    kprof_kernel *found = NULL;
    bool is_one = true;
    for (size_t i = first; i < end; i++) {
        kprof_kernel *kernel = list->items[i].kernel;
        if (!kernel || atomic_load(&kernel->proved))
            continue;
        is_one = is_one && (!found || found == kernel);
        found = kernel;
    }
    return is_one ? found : NULL;
}

/* Mark the kernels of a range that reached host memory. Those of a graph cannot be told apart. */
static void mark_range(const kprof_launch_list *list, size_t first, size_t end)
{
    const bool is_shared = KPROF_ANY(i, end - first, list->items[first + i].shares_range);
    kprof_kernel *culprit = is_shared ? find_culprit(list, first, end) : NULL;
    if (culprit)
        atomic_fetch_add(&culprit->reaches_host, 1);
    for (size_t i = first; i < end && !is_shared; i++)
        if (list->items[i].kernel)
            atomic_fetch_add(&list->items[i].kernel->reaches_host, 1);
}

/* Find out for each range whether it reached host memory. Transfers between its launches have none. */
static kprof_status read_each_proof(const kprof_batch_state *state, kprof_reader *reader, bool *reached)
{
    const kprof_launch_list *list = &state->list;
    kprof_status status = KPROF_OK;
    *reached = false;
    for (size_t first = 0, end = 0; first < list->count && status == KPROF_OK; first = end) {
        unsigned did;
        end = first + 1;
        if (!list->items[first].kernel)
            continue;
        while (end < list->count &&
               (!list->items[end].kernel || list->items[end].own_range == list->items[first].own_range))
            end++;
        status = read_proof(state, reader, list->items[first].own_range, &did);
        if (did)
            mark_range(list, first, end);
        *reached = *reached || did;
    }
    return status;
}

/* All launches are lost if one of them reached memory of the host. They do not count for -c, since later ones are
 * measured apart. This comes to an end: each search finds one such kernel. */
static void take_others(const kprof_launch_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const kprof_filter_launch place = kprof_kernel_place(&list->items[i].record);
        if (list->items[i].chosen)
            kprof_filter_take_another(kprof_engine.process.filter, &place);
    }
}

kprof_status kprof_proof_check(kprof_batch_state *state)
{
    kprof_reader *reader;
    bool reached = true, searching = state->searching;
    state->stayed_away = false;
    kprof_status status = kprof_passes_decode(state);
    KPROF_THEN(status, kprof_engine.device->reader_open(state->metrics, &reader));
    if (status != KPROF_OK)
        return status;
    status = searching ? read_each_proof(state, reader, &reached) : read_whole_proof(state, reader, &reached);
    kprof_engine.device->reader_close(reader);
    const bool is_trial = state->needs & KPROF_ON_TRIAL;
    const kprof_launch_list *list = &state->list;
    if (status == KPROF_OK)
        kprof_recording_note_proof(searching, reached);
    const bool is_lenient = state->ranges.lenient != 0;
    state->context->searches = status == KPROF_OK && reached && !searching && !is_trial && !is_lenient;
    if (status != KPROF_OK)
        return status;
    if (reached && is_trial) { /* the call was held until it had ended */
        atomic_fetch_add(&list->items[0].kernel->reaches_host, 1);
        atomic_fetch_add(&list->items[0].kernel->watched_ends, 1);
    }
    if (reached && !state->range) /* else the end of the range gives its place back */
        take_others(list);
    if (reached && state->range)
        return kprof_fail(
            KPROF_NOT_COLLECTED,
            "the range was not repeated, as its work reached memory of the host, which no replay may change");
    if (reached && is_lenient)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "the launch came behind one that may have waited for the application, and "
                          "memory of the host was written meanwhile, which no replay may change");
    if (reached)
        return kprof_fail(KPROF_NOT_COLLECTED,
                          "this launch, or one of the %zu measured with it, reached memory of the "
                          "host, which no replay may change; later launches of that kernel are measured apart",
                          list->count);
    for (size_t i = 0; i < list->count && !is_lenient; i++)
        if (list->items[i].kernel && !list->items[i].is_unwatched)
            atomic_store(&list->items[i].kernel->proved, true);
    return KPROF_OK;
}
