/* NVTX ranges as the application opens and ends them: stacks of threads, domains, texts of every kind, and what is too
 * much. */
#include "inject/engine.h"
#include "inject/forward.h"
#include "inject/nvtx.h"
#include "inject/nvtx_abi.h"
#include "inject/stacks.h"
#include "inject/trace.h"
#include "log_capture.h"
#include "sim/nvtx_client.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In place of the engine's: each stack is another one. */
static uint32_t stacks_taken;
uint32_t kprof_launch_stack(void)
{
    return ++stacks_taken;
}

#define CALL(list, PLACE, type) ((type)list[KPROF_NVTX_##PLACE])

static log_capture log_seen;

/* The trace, whose clock a test sets; 0: there is none. */
static int64_t trace_now_ns;
static char traced[1024]; /* a line for each range */
static atomic_bool stays; /* the next thread that pushes a range stays in NVTX, with its lock, until the trace ends */
static atomic_bool is_inside, is_over;

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

int64_t kprof_trace_now_ns(void)
{
    if (atomic_exchange(&stays, false)) {
        atomic_store(&is_inside, true);
        while (!atomic_load(&is_over))
            wait_ms(1);
        wait_ms(10); /* the end is given the time to give up */
    }
    return trace_now_ns;
}

void kprof_trace_follow(int begun) {}

void kprof_trace_lose_range(void) {}

void kprof_trace_take_range(const kprof_trace_range *range)
{
    const size_t length = strlen(traced);
    assert_true(range->thread == gettid() || range->end_ns < 0);
    assert_int_equal(range->end_thread, range->thread);
    snprintf(traced + length, sizeof traced - length, "%s %s@%s %d %d\n", range->style, range->domain, range->name,
             (int)range->start_ns, (int)range->end_ns);
}

TEST(ranges_are_traced)
{
    kprof_nvtx_event event = nvtx_event("conv");
    nvtx_push("before"); /* while nothing is traced */
    trace_now_ns = 10;
    nvtx_push("step");
    trace_now_ns = 20;
    nvtx_domain_push(nvtx_domain("net"), &event);
    const uint64_t epoch = nvtx_start("epoch"), open = nvtx_start("open");
    trace_now_ns = 30;
    nvtx_pop();
    nvtx_end(epoch);
    nvtx_end(epoch);
    nvtx_pop();
    nvtx_pop(); /* there is none */
    kprof_engine.process.config.nvtx = true;
    kprof_nvtx_trace_open();
    assert_string_equal(traced, "PushPop @step 10 30\nStartEnd @epoch 20 30\nPushPop net@conv 20 -1\n"
                                "StartEnd @open 20 -1\n");
    trace_now_ns = 0;
    nvtx_domain_pop(nvtx_domain("net"));
    nvtx_end(open);
    kprof_engine.process.config.nvtx = false;
}

static void *push_other(void *unused)
{
    nvtx_push("other");
    return unused;
}

TEST(end_beside_a_thread_in_nvtx)
{
    pthread_t thread;
    traced[0] = '\0';
    trace_now_ns = 40;
    atomic_store(&stays, true);
    assert_int_equal(pthread_create(&thread, NULL, push_other, NULL), 0);
    while (!atomic_load(&is_inside))
        wait_ms(1);
    kprof_engine.process.config.nvtx = true;
    atomic_store(&is_over, true);
    kprof_nvtx_trace_open();
    kprof_engine.process.config.nvtx = false;
    trace_now_ns = 0;
    assert_non_null(strstr(traced, "PushPop @other 40 -1\n"));
    pthread_join(thread, NULL);
}

TEST(pushed_ranges_are_a_stack)
{
    assert_string_equal(kprof_nvtx_text(), "");
    assert_int_equal(nvtx_pop(), -1);
    assert_int_equal(nvtx_push("step"), 0);
    char name[] = "forward";
    assert_int_equal(nvtx_push(name), 1);
    memset(name, 'x', sizeof name - 1); /* the name is the application's, which may write over it */
    const char *inner = kprof_nvtx_text();
    assert_string_equal(inner, "step/forward/");
    assert_int_equal(nvtx_pop(), 1);
    assert_string_equal(kprof_nvtx_text(), "step/");
    assert_int_equal(nvtx_push("forward"), 1);
    assert_ptr_equal(kprof_nvtx_text(), inner); /* one copy of each text */
    assert_int_equal(nvtx_pop(), 1);
    assert_int_equal(nvtx_pop(), 0);
    assert_string_equal(kprof_nvtx_text(), "");
}

TEST(domains_have_stacks_of_their_own)
{
    void *net = nvtx_domain("net");
    assert_non_null(net);
    assert_ptr_equal(nvtx_domain("net"), net); /* as another module of the application would */
    assert_ptr_not_equal(nvtx_domain("io"), net);
    kprof_nvtx_event event = nvtx_event("conv");
    nvtx_push("step");
    assert_int_equal(nvtx_domain_push(net, &event), 0);
    nvtx_push("forward");
    assert_string_equal(kprof_nvtx_text(), "step/forward/; net@conv/");
    assert_int_equal(nvtx_domain_pop(net), 0); /* below another one */
    assert_string_equal(kprof_nvtx_text(), "step/forward/");
    assert_int_equal(nvtx_domain_pop(net), -1);
    assert_int_equal(nvtx_domain_pop(NULL), 1); /* the default domain */
    nvtx_pop();
    assert_int_equal(nvtx_domain_push((void *)0xdeadbeef, &event), 0); /* no handle of ours is ever followed */
    assert_string_equal(kprof_nvtx_text(), "conv/");
    nvtx_domain_pop((void *)0xdeadbeef);
}

TEST(started_ranges_are_of_the_process)
{
    uint64_t epoch = nvtx_start("epoch"), batch = nvtx_start("batch");
    assert_true(epoch != batch && epoch != 0);
    nvtx_push("step");
    assert_string_equal(kprof_nvtx_text(), "step/; epoch; batch");
    nvtx_end(epoch);
    nvtx_end(epoch);
    CALL(nvtx_core2, DOMAIN_RANGE_END, void (*)(void *, uint64_t))(NULL, 4711);
    nvtx_pop();
    assert_string_equal(kprof_nvtx_text(), "batch");
    nvtx_end(batch);
    assert_string_equal(kprof_nvtx_text(), "");
}

TEST(names_come_in_every_form)
{
    kprof_nvtx_event event = nvtx_event(NULL);
    void *string = CALL(nvtx_core2, DOMAIN_REGISTER_STRING_A, void *(*)(void *, const char *))(NULL, "registered");
    void *wide = CALL(nvtx_core2, DOMAIN_REGISTER_STRING_W, void *(*)(void *, const wchar_t *))(NULL, L"w\u00efde");
    void *domain = CALL(nvtx_core2, DOMAIN_CREATE_W, void *(*)(const wchar_t *))(L"d");
    CALL(nvtx_core, RANGE_PUSH_W, int (*)(const wchar_t *))(L"\u20ac\U0001f600\xd800");
    CALL(nvtx_core, RANGE_PUSH_EX, int (*)(const kprof_nvtx_event *))(&event);
    event.message_type = KPROF_NVTX_REGISTERED;
    event.message.registered = string;
    nvtx_domain_push(NULL, &event);
    event.message.registered = wide;
    nvtx_domain_push(NULL, &event);
    event.message.registered = &event; /* no handle */
    nvtx_domain_push(NULL, &event);
    event.message_type = 0;
    nvtx_domain_push(NULL, &event);
    event.message_type = KPROF_NVTX_UNICODE;
    event.message.unicode = L"x";
    nvtx_domain_push(domain, &event);
    event.size = 8; /* of a version without messages */
    nvtx_domain_push(domain, &event);
    nvtx_domain_push(domain, NULL);
    assert_string_equal(kprof_nvtx_text(), "d@x///; \xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd//registered/w\xc3\xaf"
                                           "de///");
    for (int i = 0; i < 3; i++)
        nvtx_domain_pop(domain);
    for (int i = 0; i < 6; i++)
        nvtx_pop();
    uint64_t ids[] = {
        CALL(nvtx_core, RANGE_START_W, uint64_t(*)(const wchar_t *))(L"w"),
        CALL(nvtx_core, RANGE_START_EX, uint64_t(*)(const kprof_nvtx_event *))(&(kprof_nvtx_event){0}),
        CALL(nvtx_core2, DOMAIN_RANGE_START_EX, uint64_t(*)(void *, const kprof_nvtx_event *))(domain, NULL)};
    assert_string_equal(kprof_nvtx_text(), "w; ; d@");
    for (int i = 0; i < 3; i++)
        nvtx_end(ids[i]);
    assert_int_equal(nvtx_push(NULL), 0);
    nvtx_pop();
}

TEST(many_texts_are_kept)
{
    char name[64];
    const char *first = NULL;
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "step %d", i);
        nvtx_push(name);
        const char *text = kprof_nvtx_text();
        first = first ? first : text;
        assert_memory_equal(text, name, strlen(name));
        nvtx_pop();
    }
    nvtx_push("step 0");
    assert_ptr_equal(kprof_nvtx_text(), first);
    kprof_the_nvtx.text_bytes = KPROF_NVTX_TEXT_BYTES; /* as if it were full */
    nvtx_push("another");
    for (int i = 0; i < 2; i++)
        assert_string_equal(kprof_nvtx_text(), "");
    assert_int_equal(log_seen.count, 1);
    nvtx_pop();
    assert_ptr_equal(kprof_nvtx_text(), first);
    nvtx_pop();
}

TEST(filters_see_the_thread_alone)
{
    static char *expressions[] = {"step/forward]"};
    kprof_filter *any, *some;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){0}, &any), KPROF_OK);
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.nvtx_include = {expressions, 1, 1}}, &some), KPROF_OK);
    nvtx_push("step");
    assert_true(kprof_nvtx_match(any));
    assert_false(kprof_nvtx_match(some));
    nvtx_push("forward");
    assert_true(kprof_nvtx_match(some));
    nvtx_pop();
    nvtx_pop();
    kprof_filter_free(any);
    kprof_filter_free(some);
}

static void *use(void *number)
{
    char name[64], expected[128];
    kprof_nvtx_event event = nvtx_event("inner");
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "thread %ld step %d", *(long *)number, i % 10);
        void *domain = nvtx_domain(i % 2 ? "odd" : "even");
        uint64_t id = nvtx_start("shared");
        nvtx_push(name);
        nvtx_domain_push(domain, &event);
        snprintf(expected, sizeof expected, "%s@inner/; %s/; ", i % 2 ? "odd" : "even", name);
        if (strncmp(kprof_nvtx_text(), expected, strlen(expected)) != 0)
            return NULL;
        nvtx_end(id);
        nvtx_domain_pop(domain);
        nvtx_pop();
    }
    nvtx_push("still open"); /* goes with the thread */
    return number;
}

TEST(threads_have_stacks_of_their_own)
{
    pthread_t threads[4];
    long numbers[] = {0, 1, 2, 3};
    kprof_the_nvtx.text_bytes = 0;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, &numbers[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &numbers[i]);
    }
    assert_string_equal(kprof_nvtx_text(), "");
}

static pthread_barrier_t barrier;

static void *push_and_wait(void *name)
{
    nvtx_push(name);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

TEST(all_threads_count_where_that_is_asked_for)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    nvtx_push("first");
    assert_int_equal(pthread_create(&thread, NULL, push_and_wait, (void *)(uintptr_t) "second"), 0);
    pthread_barrier_wait(&barrier);
    nvtx_push("third");
    assert_string_equal(kprof_nvtx_text(), "first/third/");
    kprof_engine.process.config.nvtx_of_process = true;
    assert_string_equal(kprof_nvtx_text(), "first/second/third/");
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    assert_string_equal(kprof_nvtx_text(), "first/third/");
    kprof_engine.process.config.nvtx_of_process = false;
    nvtx_pop();
    nvtx_pop();
    pthread_barrier_destroy(&barrier);
}

TEST(a_forked_child_goes_on)
{
    nvtx_push("parent");
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t id = nvtx_start("child");
        int same = strcmp(kprof_nvtx_text(), "parent/; child");
        nvtx_end(id);
        _exit(same == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    nvtx_pop();
    assert_int_equal(status, 0);
}

static const void *no_table(uint32_t table)
{
    return NULL;
}

static int attach(void **state)
{
    log_capture_start(&log_seen);
    if (kprof_nvtx_attach(no_table) != 0)
        return -1;
    return kprof_nvtx_attach(nvtx_get_table) == 1 ? 0 : -1;
}

TEST(contexts_and_streams_have_names)
{
    static int handles[2];
    kprof_filter *filter = NULL;
    assert_int_equal(kprof_filter_new(&(kprof_filter_spec){.stream = "comp.*"}, &filter), KPROF_OK);
    assert_false(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &handles[0]));
    nvtx_name_stream(&handles[0], "compute");
    nvtx_name_context(&handles[1], "compute");
    nvtx_name_stream(&handles[1], "copy");
    assert_true(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &handles[0]));
    assert_false(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &handles[1]));
    assert_false(kprof_nvtx_match_name(filter, KPROF_PART_CONTEXT, &handles[1])); /* nobody asks for it */
    nvtx_name_stream(&handles[0], "other");
    assert_false(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &handles[0]));
    CALL(nvtx_cuda, NAME_CU_STREAM_W, void (*)(void *, const wchar_t *))(&handles[1], L"comp\u00fcte");
    assert_true(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &handles[1]));
    char others[2000];
    for (int i = 0; i < 2000; i++) /* more than there is space for */
        nvtx_name_stream(&others[i], "comp");
    assert_true(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &others[1]));
    assert_false(kprof_nvtx_match_name(filter, KPROF_PART_STREAM, &others[1999]));
    kprof_filter_free(filter);
}

static void *push_in_thread(void *range)
{
    nvtx_push(range);
    nvtx_pop();
    return NULL;
}

TEST(backward_passes_have_stacks_of_the_forward_pass)
{
    uint64_t sequence = 0;
    nvtx_push("aten::mul, seq = 4, op_id = 1");
    nvtx_pop();
    assert_int_equal(stacks_taken, 0); /* nobody asks for call stacks */
    kprof_engine.process.config.call_stack_type = 2;
    atomic_store(&kprof_engine.process.armed, true);
    nvtx_push("aten::linear, seq = 5, op_id = 2");
    assert_false(kprof_nvtx_backward(&sequence));
    nvtx_push("aten::empty, op_id = 3"); /* makes no node */
    nvtx_pop();
    nvtx_pop();
    nvtx_push("aten::eq, seq = 6"); /* neither does this one, whose number the next one has */
    nvtx_pop();
    nvtx_push("aten::mm, seq = 6");
    nvtx_pop();
    assert_int_equal(stacks_taken, 3);
    nvtx_push("autograd::engine::evaluate_function: AddmmBackward0, seq = 5, op_id = 9");
    nvtx_push("AddmmBackward0, seq = 5, op_id = 10");
    assert_true(kprof_nvtx_backward(&sequence));
    assert_int_equal(sequence, 5);
    assert_int_equal(kprof_forward_find(5), 1);
    assert_int_equal(kprof_forward_find(6), 3);
    assert_int_equal(kprof_forward_find(4), 0);
    assert_int_equal(kprof_forward_find(5 + (1u << 16)), 0);
    nvtx_pop();
    nvtx_pop();
    assert_false(kprof_nvtx_backward(&sequence));
    pthread_t thread;
    char other[] = "aten::mm, seq = 6";
    pthread_create(&thread, NULL, push_in_thread, other);
    pthread_join(thread, NULL);
    assert_int_equal(kprof_forward_find(6), 0); /* two threads have it */
    atomic_store(&kprof_engine.process.armed, false);
    kprof_engine.process.config.call_stack_type = 0;
}

/* The last test: afterwards there can be no further domain. */
TEST(what_is_too_much_is_left_out)
{
    char name[2 * KPROF_NVTX_NAME_BYTES] = "";
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa4", 3);
    nvtx_push(name);
    assert_int_equal(strlen(kprof_nvtx_text()), KPROF_NVTX_NAME_BYTES - 2 + 1); /* whole characters, and a / */
    const unsigned told = log_seen.count;
    for (int i = 1; i < 2 * KPROF_NVTX_PUSHED_MAX; i++)
        assert_int_equal(nvtx_push("deep"), i < KPROF_NVTX_PUSHED_MAX ? i : -1);
    assert_int_equal(log_seen.count, told + 1);
    assert_non_null(strstr(log_seen.last, "128 NVTX ranges are open in a thread"));
    for (int i = 0; i < KPROF_NVTX_PUSHED_MAX; i++)
        assert_int_equal(nvtx_pop(), -1);
    for (int i = KPROF_NVTX_PUSHED_MAX; i-- > 0;)
        assert_int_equal(nvtx_pop(), i);
    uint64_t ids[2 * KPROF_NVTX_STARTED_MAX];
    for (int i = 0; i < 2 * KPROF_NVTX_STARTED_MAX; i++)
        ids[i] = nvtx_start("s");
    assert_int_equal(strlen(kprof_nvtx_text()), 3 * KPROF_NVTX_STARTED_MAX - 2);
    for (int i = 0; i < 2 * KPROF_NVTX_STARTED_MAX; i++)
        nvtx_end(ids[i]);
    assert_string_equal(kprof_nvtx_text(), "");
    for (int i = 0; i < 2 * KPROF_NVTX_DOMAINS_MAX; i++) {
        snprintf(name, sizeof name, "domain %d", i);
        (void)nvtx_domain(name);
    }
    assert_null(nvtx_domain("one more"));
}

AROUND_ALL(attach, NULL)
