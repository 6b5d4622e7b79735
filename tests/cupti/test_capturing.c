/* From the application's calls kprof knows whether a stream is being captured. The driver of the test tells of one
 * stream that it still is. */
#include "cupti/capturing.h"
#include "cupti/driver.h"
#include "test.h"

#include <pthread.h>

#define ID(name) CUPTI_DRIVER_TRACE_CBID_##name
#define MANY     100

static char context, other_context, handles[MANY];
static CUstream still_captured; /* after a call that fails */

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = stream == still_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* In place of the driver's. */
kprof_status kprof_driver_load(const kprof_driver_api **out)
{
    static const kprof_driver_api api = {.cuStreamIsCapturing_ = is_capturing};
    *out = &api;
    return KPROF_OK;
}

const char *kprof_driver_error(CUresult result)
{
    return "error of the test";
}

static CUstream stream(unsigned number)
{
    return (CUstream)(void *)&handles[number];
}

static void begin_in(const void *of, CUstream captured)
{
    cuStreamBeginCapture_v2_params p = {.hStream = captured};
    kprof_capturing_note(ID(cuStreamBeginCapture_v2), &p, of, CUDA_SUCCESS);
}

static void end(CUstream captured, CUresult result)
{
    cuStreamEndCapture_params p = {.hStream = captured};
    kprof_capturing_note(ID(cuStreamEndCapture), &p, &context, result);
}

static void destroy(CUstream going, CUresult result)
{
    cuStreamDestroy_v2_params p = {.hStream = going};
    kprof_capturing_note(ID(cuStreamDestroy_v2), &p, &context, result);
}

static int set_up(void **state)
{
    still_captured = NULL;
    return kprof_capturing() ? -1 : 0;
}

TEST(test_captures_of_two_streams)
{
    begin_in(&context, stream(0));
    begin_in(&context, stream(1));
    end(stream(0), CUDA_SUCCESS);
    assert_true(kprof_capturing());
    end(stream(1), CUDA_SUCCESS);
    assert_false(kprof_capturing());
}

TEST(test_calls_that_fail)
{
    cuStreamBeginCapture_v2_params p = {.hStream = stream(0)};
    kprof_capturing_note(ID(cuStreamBeginCapture_v2), &p, &context, CUDA_ERROR_ILLEGAL_STATE);
    assert_false(kprof_capturing());
    begin_in(&context, stream(0));
    still_captured = stream(0);
    end(stream(1), CUDA_ERROR_ILLEGAL_STATE); /* which is not captured */
    end(stream(1), CUDA_ERROR_INVALID_HANDLE);
    end(stream(0), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    end(stream(0), CUDA_ERROR_INVALID_VALUE);
    end(stream(0), CUDA_ERROR_NOT_INITIALIZED);
    destroy(stream(0), CUDA_ERROR_INVALID_CONTEXT);
    assert_true(kprof_capturing());
    still_captured = NULL;
    end(stream(0), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_false(kprof_capturing());
}

/* A capture may have begun by a call that is not known: its end must not hide the next one's beginning. */
TEST(test_end_of_a_capture_that_is_not_known)
{
    end(stream(0), CUDA_SUCCESS);
    begin_in(&context, stream(0));
    end(stream(1), CUDA_SUCCESS);
    assert_true(kprof_capturing());
    end(stream(0), CUDA_SUCCESS);
    assert_false(kprof_capturing());
}

TEST(test_stream_that_goes_while_it_is_captured)
{
    begin_in(&context, stream(0));
    destroy(stream(1), CUDA_SUCCESS);
    assert_true(kprof_capturing());
    destroy(stream(0), CUDA_SUCCESS);
    assert_false(kprof_capturing());
}

TEST(test_context_that_goes_while_a_stream_is_captured)
{
    begin_in(&context, stream(0));
    begin_in(&other_context, stream(1));
    kprof_capturing_forget(&context);
    assert_true(kprof_capturing());
    kprof_capturing_forget(&other_context);
    assert_false(kprof_capturing());
}

static void begin_of_thread(void)
{
    cuStreamBeginCapture_v2_ptsz_params p = {.hStream = NULL};
    kprof_capturing_note(ID(cuStreamBeginCapture_v2_ptsz), &p, &context, CUDA_SUCCESS);
}

static void end_of_thread(void)
{
    cuStreamEndCapture_ptsz_params p = {.hStream = NULL};
    kprof_capturing_note(ID(cuStreamEndCapture_ptsz), &p, &context, CUDA_SUCCESS);
}

static void *capture_in_thread(void *unused)
{
    begin_of_thread();
    end_of_thread();
    assert_true(kprof_capturing());
    return unused;
}

/* Each thread has one. */
TEST(test_default_streams_of_threads)
{
    pthread_t thread;
    begin_of_thread();
    assert_int_equal(pthread_create(&thread, NULL, capture_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    end_of_thread();
    assert_false(kprof_capturing());
}

TEST(test_many_captures)
{
    for (unsigned i = 0; i < MANY; i++)
        begin_in(&context, stream(i));
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(kprof_capturing());
        end(stream(i), CUDA_SUCCESS);
    }
    assert_false(kprof_capturing());
}

AROUND_EACH(set_up, NULL)
