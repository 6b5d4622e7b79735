/* Adds up the counters of what the SMs read and write outside their GPU. */
#include "inject/batch/proof.h"

#include "inject/batch/passes.h"
#include "inject/engine.h"
#include "inject/recording.h"

/* Did the launches of a range reach memory outside their GPU? Also true when that cannot be told. */
static kprof_status read_proof(const kprof_batch_state *state, kprof_reader *reader, size_t range, bool *reached)
{
    const size_t number = range - state->ranges.first;
    const bool is_lenient = !state->searching && (state->ranges.lenient >> number & 1);
    double sectors[8];
    const kprof_strlist *names = &state->metrics->proof;
    *reached = true;
    if (names->count == 0 || names->count > sizeof sectors / sizeof *sectors)
        return kprof_fail(KPROF_UNSUPPORTED, "the chip has no counters for what reaches host memory");
    kprof_status status =
        kprof_engine.device->reader_read(reader, (kprof_range){state->context->profiler, range}, names, sectors);
    if (status != KPROF_OK)
        return status;
    if (is_lenient)
        sectors[0] -= sectors[KPROF_PROOF_READS];
    *reached = false;
    for (size_t i = 0; i < names->count; i++)
        *reached = *reached || (i != KPROF_PROOF_READS && !(sectors[i] == 0)); /* NaN is no proof */
    return KPROF_OK;
}

/* Did any launch of the batch, whose ranges are the proof's? */
static kprof_status read_whole_proof(const kprof_batch_state *state, kprof_reader *reader, bool *reached)
{
    const kprof_batch_ranges *ranges = &state->ranges;
    kprof_status status = KPROF_OK;
    *reached = ranges->count == ranges->first;
    for (size_t i = ranges->first; i < ranges->count && status == KPROF_OK && !*reached; i++)
        if (!(ranges->unread >> (i - ranges->first) & 1))
            status = read_proof(state, reader, i, reached);
    return status;
}

/* Find out for each launch whether it reached host memory, and mark the kernels of those that did. */
static kprof_status read_each_proof(const kprof_batch_state *state, kprof_reader *reader, bool *reached)
{
    kprof_status status = KPROF_OK;
    *reached = false;
    for (size_t i = 0; i < state->list.count && status == KPROF_OK; i++) {
        const kprof_open_launch *launch = &state->list.items[i];
        bool this_one = false;
        if (launch->kernel)
            status = read_proof(state, reader, launch->own_range, &this_one);
        if (this_one)
            atomic_fetch_add(&launch->kernel->reaches_host, 1);
        *reached = *reached || this_one;
    }
    return status;
}

/* Launches that are lost, since one of them reached memory of the host, do not count for -c: later ones are measured
 * apart. That comes to an end, as each search finds out a kernel. */
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
