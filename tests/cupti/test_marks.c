/* Marks behind launches: how many the GPU has passed and has ahead, in each context, in whatever order they are passed,
 * and what becomes of those for which there is no space. */
#include "core/monotonic.h"
#include "cupti/driver.h"
#include "cupti/marks.h"
#include "test.h"

#define MOST 1023 /* marks ahead that a context has, as in marks.c */

/* The driver's events. */
static struct {
    bool is_recorded, is_passed;
    CUstream stream;
} events[4 * MOST];
static unsigned event_count, queries;
static CUresult create_result, record_result;
static int contexts[2];

static CUresult CUDAAPI create(CUevent *event, unsigned flags)
{
    assert_int_equal(flags, CU_EVENT_DISABLE_TIMING);
    if (create_result == CUDA_SUCCESS)
        *event = (CUevent)(void *)&events[event_count++];
    return create_result;
}

static unsigned number_of(CUevent event)
{
    return (unsigned)((char *)(void *)event - (char *)events) / sizeof *events;
}

static CUresult CUDAAPI record(CUevent event, CUstream stream)
{
    if (record_result != CUDA_SUCCESS)
        return record_result;
    events[number_of(event)].is_recorded = true;
    events[number_of(event)].is_passed = false;
    events[number_of(event)].stream = stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI query(CUevent event)
{
    queries++;
    assert_true(events[number_of(event)].is_recorded);
    return events[number_of(event)].is_passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* In place of the driver's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuEventCreate_ = create, .cuEventRecord_ = record, .cuEventQuery_ = query};
    *out = &api;
    return KPROF_OK;
}

static int64_t now_ns = 1;

/* In place of the clock. */
int64_t kprof_monotonic_ns(void)
{
    return now_ns;
}

static int set_up(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        kprof_marks_forget(&contexts[i]);
    event_count = 0;
    create_result = record_result = CUDA_SUCCESS;
    return 0;
}

static void set(unsigned context, void *stream)
{
    assert_null(kprof_marks_set(&contexts[context], stream, NULL));
}

static void *set_behind(void *what)
{
    return kprof_marks_set(&contexts[0], NULL, what);
}

static void pass_newest(void)
{
    events[event_count - 1].is_passed = true;
}

TEST(test_what_is_short)
{
    int first, second;
    assert_null(set_behind(&first));
    pass_newest();
    assert_ptr_equal(set_behind(&second), &first);
    pass_newest();
    now_ns += 1000001;
    assert_null(set_behind(&first)); /* it may have taken as long */
    pass_newest();
    assert_int_equal(kprof_marks_look(NULL).ahead, 0); /* who looks forgets nothing */
    set(1, NULL);                                      /* and another context changes nothing */
    assert_ptr_equal(set_behind(NULL), &first);
    pass_newest();
    assert_null(set_behind(&first)); /* behind nothing */
    set(0, NULL);
    pass_newest(); /* in another stream, of which nobody asks */
    assert_null(set_behind(NULL));
}

/* The GPU is asked ever more seldom. */
TEST(test_gpu_that_is_far_behind)
{
    int launched;
    queries = 0;
    for (unsigned i = 0; i < 500; i++)
        assert_null(set_behind(&launched));
    assert_in_range(queries, 8, 16);
    unsigned more = 0;
    do
        pass_newest();
    while (++more < 100 && set_behind(&launched) == NULL);
    assert_in_range(more, 1, 64);
    pass_newest();
    assert_ptr_equal(set_behind(&launched), &launched);
}

static void assert_progress(const void *context, uint64_t passed, uint64_t ahead)
{
    const kprof_progress progress = kprof_marks_look(context);
    assert_int_equal(progress.passed, passed);
    assert_int_equal(progress.ahead, ahead);
}

static void assert_first(uint64_t number)
{
    assert_int_equal(kprof_marks_look(&contexts[0]).first, number);
}

/* The oldest mark that is ahead has the same number for as long as it is, also when the ring begins anew. */
TEST(test_first)
{
    assert_first(0);
    for (uint64_t number = 1; number < 2 * MOST; number += 2) {
        set(0, &contexts[0]);
        set(0, NULL);
        assert_first(number);
        events[number % (MOST + 1)].is_passed = true;
        assert_first(number);
        events[(number - 1) % (MOST + 1)].is_passed = true;
        assert_first(0);
    }
    assert_int_equal(kprof_marks_look(NULL).first, 0);
}

TEST(test_contexts)
{
    assert_progress(&contexts[0], 0, 0);
    assert_progress(NULL, 0, 0);
    set(0, &contexts[0]);
    assert_ptr_equal(events[0].stream, &contexts[0]);
    set(0, NULL);
    set(1, NULL);
    assert_progress(&contexts[0], 0, 2);
    assert_progress(&contexts[1], 0, 1);
    assert_progress(NULL, 0, 3);
    events[1].is_passed = true; /* the first one is in another stream */
    assert_progress(&contexts[0], 1, 1);
    assert_progress(&contexts[0], 1, 1); /* it counts once */
    assert_progress(NULL, 1, 2);
    events[0].is_passed = true;
    assert_progress(&contexts[0], 2, 0);
    kprof_marks_forget(&contexts[1]);
    assert_progress(&contexts[1], 0, 0);
    assert_progress(NULL, 2, 0);
    assert_null(kprof_marks_set(NULL, NULL, contexts)); /* in no context */
    assert_progress(NULL, 2, 0);
}

TEST(test_many)
{
    for (unsigned i = 0; i < MOST + 5; i++)
        set(0, NULL);
    assert_progress(&contexts[0], 0, MOST);
    for (unsigned i = 0; i < 10; i++)
        events[i].is_passed = true;
    for (unsigned i = 0; i < 20; i++) /* without anybody who looks */
        set(0, NULL);
    assert_progress(&contexts[0], 10, MOST);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < event_count; i++)
            events[i].is_passed = true;
        assert_progress(&contexts[0], 10 + MOST * (round + 1), 0);
        for (unsigned i = 0; i < MOST; i++)
            set(0, NULL);
        assert_progress(&contexts[0], 10 + MOST * (round + 1), MOST);
    }
    assert_true(event_count <= MOST + 1); /* the same again and again */
}

TEST(test_driver_that_fails)
{
    create_result = CUDA_ERROR_OUT_OF_MEMORY;
    set(0, NULL);
    assert_progress(&contexts[0], 0, 0);
    create_result = CUDA_SUCCESS;
    record_result = CUDA_ERROR_INVALID_HANDLE; /* of a stream that is gone */
    set(0, NULL);
    assert_progress(&contexts[0], 0, 0);
    record_result = CUDA_SUCCESS;
    set(0, NULL);
    assert_progress(&contexts[0], 0, 1);
    assert_int_equal(event_count, 1);
}

int main(void)
{
    around_each(set_up, NULL);
    int result = run_all_tests();
    (void)set_up(NULL);
    return result;
}
