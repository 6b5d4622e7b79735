/* The gate: who waits for whom, until when, and that nesting and forking leave it as it was. */
#include "inject/engine.h"
#include "inject/gate.h"
#include "inject/wait.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENDLESS_MS 3600000 /* longer than a test may run */
#define LONG_MS    60000
#define SHORT_MS   20
#define VISITS     20000
#define MANY_LOOKS 200 /* more than there are in HOLD_MS */
#define MS_NS      INT64_C(1000000)
#define HOLD_MS    20 /* for as long a thread waits where there is work and none of it ends */

/* Marks behind work on the GPU. */
static _Atomic uint64_t passed, ahead;
static atomic_bool moves; /* one is passed at each look */
static _Atomic unsigned looks;

static kprof_progress marks_look(const void *context)
{
    assert_null(context); /* the work of any context may be what the other thread waits for */
    atomic_fetch_add(&looks, 1);
    if (atomic_load(&moves))
        atomic_fetch_add(&passed, 1);
    return (kprof_progress){.passed = atomic_load(&passed), .ahead = atomic_load(&ahead)};
}

static const kprof_device_ops device_ops = {.marks_look = marks_look};

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* A thread that goes inside and comes out when told to. */
typedef struct visitor {
    pthread_t thread;
    atomic_bool inside, may_leave;
    int depth;
} visitor;

static void *visit(void *user)
{
    visitor *v = user;
    for (int i = 0; i < v->depth; i++)
        kprof_gate_enter_shared();
    atomic_store(&v->inside, true);
    while (!atomic_load(&v->may_leave))
        wait_ms(1);
    for (int i = 0; i < v->depth; i++)
        kprof_gate_leave_shared();
    return NULL;
}

static void start_visit(visitor *v, int depth)
{
    atomic_store(&v->inside, false);
    atomic_store(&v->may_leave, false);
    v->depth = depth;
    kprof_wait_allow(HOLD_MS * MS_NS); /* as a call begins */
    assert_int_equal(pthread_create(&v->thread, NULL, visit, v), 0);
}

static void await_inside(visitor *v)
{
    while (!atomic_load(&v->inside))
        wait_ms(1);
}

static void end_visit(visitor *v)
{
    atomic_store(&v->may_leave, true);
    pthread_join(v->thread, NULL);
}

TEST(test_exclusive_at_once_when_empty)
{
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
    kprof_gate_enter_shared();
    kprof_gate_leave_shared();
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

TEST(test_exclusive_gives_up)
{
    visitor v;
    start_visit(&v, 1);
    await_inside(&v);
    assert_false(kprof_gate_enter_exclusive(0));
    assert_false(kprof_gate_enter_exclusive(SHORT_MS));
    kprof_gate_enter_shared(); /* what was given up keeps nobody out */
    kprof_gate_leave_shared();
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

TEST(test_shared_waits_for_exclusive)
{
    visitor v;
    assert_true(kprof_gate_enter_exclusive(0));
    start_visit(&v, 1);
    wait_ms(SHORT_MS);
    assert_false(atomic_load(&v.inside));
    kprof_gate_leave_exclusive();
    await_inside(&v);
    end_visit(&v);
}

static void *try_without_waiting(void *user)
{
    *(bool *)user = kprof_gate_enter_exclusive(0);
    return NULL;
}

TEST(test_exclusive_with_no_time_waits_for_nobody)
{
    pthread_t other;
    bool entered = true;
    assert_true(kprof_gate_enter_exclusive(0));
    assert_int_equal(pthread_create(&other, NULL, try_without_waiting, &entered), 0);
    pthread_join(other, NULL); /* for ever, if it waited */
    assert_false(entered);
    kprof_gate_leave_exclusive();
}

static void *let_go_soon(void *user)
{
    wait_ms(SHORT_MS);
    atomic_store(&((visitor *)user)->may_leave, true);
    return NULL;
}

TEST(test_exclusive_waits_for_shared)
{
    visitor v;
    pthread_t helper;
    start_visit(&v, 1);
    await_inside(&v);
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, &v), 0);
    assert_true(kprof_gate_enter_exclusive(LONG_MS));
    assert_true(atomic_load(&v.may_leave));
    kprof_gate_leave_exclusive();
    pthread_join(helper, NULL);
    pthread_join(v.thread, NULL);
}

TEST(test_waits_in_vain_once_only)
{
    visitor v;
    pthread_t helper;
    start_visit(&v, 1);
    await_inside(&v);
    assert_false(kprof_gate_enter_exclusive(SHORT_MS));
    assert_false(kprof_gate_enter_exclusive(ENDLESS_MS));
    assert_false(kprof_gate_enter_exclusive(0));
    assert_false(kprof_gate_enter_exclusive(ENDLESS_MS));
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(SHORT_MS));
    kprof_gate_leave_exclusive();
    start_visit(&v, 1);
    await_inside(&v);
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, &v), 0);
    assert_true(kprof_gate_enter_exclusive(LONG_MS)); /* again, since the gate was had */
    kprof_gate_leave_exclusive();
    pthread_join(helper, NULL);
    pthread_join(v.thread, NULL);
}

static void *let_go_late(void *user)
{
    wait_ms(10 * HOLD_MS);
    atomic_store(&((visitor *)user)->may_leave, true);
    return NULL;
}

/* The thread inside may wait for that work, and that for this very thread. */
TEST(test_gives_up_where_no_work_ends)
{
    visitor v;
    start_visit(&v, 1);
    await_inside(&v);
    atomic_store(&passed, 7);
    atomic_store(&ahead, 1);
    assert_false(kprof_gate_enter_exclusive(ENDLESS_MS));
    atomic_store(&ahead, 0);
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(0)); /* the next wait is a long one again */
    kprof_gate_leave_exclusive();
}

/* A call that has waited for work waits for the gate only as long as it still may, and then for nothing else. */
TEST(test_waits_of_a_call_share_their_time)
{
    visitor v;
    start_visit(&v, 1);
    await_inside(&v);
    atomic_store(&ahead, 1);
    kprof_wait_allow(HOLD_MS * MS_NS);
    kprof_wait_note(HOLD_MS * MS_NS / 2);
    assert_false(kprof_gate_enter_exclusive(ENDLESS_MS));
    assert_int_equal(0, kprof_wait_rest_ns());
    assert_false(kprof_gate_enter_exclusive(ENDLESS_MS)); /* at once */
    assert_int_equal(0, kprof_wait_rest_ns());
    atomic_store(&ahead, 0);
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

static void *let_go_after_many_looks(void *user)
{
    while (atomic_load(&looks) < MANY_LOOKS && !atomic_load(&((visitor *)user)->may_leave))
        wait_ms(1);
    atomic_store(&((visitor *)user)->may_leave, true);
    return NULL;
}

/* The thread inside may wait for that launch, too. */
TEST(test_gives_up_behind_a_launch_without_a_mark)
{
    visitor v;
    pthread_t helper;
    start_visit(&v, 1);
    await_inside(&v);
    atomic_store(&looks, 0);
    atomic_store(&kprof_engine.waits.unmarked, true);
    assert_int_equal(pthread_create(&helper, NULL, let_go_after_many_looks, &v), 0);
    const bool has_entered = kprof_gate_enter_exclusive(LONG_MS);
    if (has_entered)
        kprof_gate_leave_exclusive(); /* else later tests would wait for ever */
    atomic_store(&kprof_engine.waits.unmarked, false);
    end_visit(&v);
    pthread_join(helper, NULL);
    assert_false(has_entered);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

static void wait_long_for_another(void)
{
    visitor v;
    pthread_t helper;
    start_visit(&v, 1);
    await_inside(&v);
    assert_int_equal(pthread_create(&helper, NULL, let_go_late, &v), 0);
    assert_true(kprof_gate_enter_exclusive(LONG_MS));
    assert_true(atomic_load(&v.may_leave));
    kprof_gate_leave_exclusive();
    pthread_join(helper, NULL);
    pthread_join(v.thread, NULL);
}

TEST(test_waits_on_where_work_ends)
{
    atomic_store(&ahead, 1);
    atomic_store(&moves, true);
    wait_long_for_another();
    atomic_store(&moves, false);
    atomic_store(&ahead, 0);
}

TEST(test_waits_on_where_there_is_no_work)
{
    wait_long_for_another();
}

typedef struct replay {
    pthread_t thread;
    atomic_bool begun, over;
} replay;

static void *replay_shortly(void *user)
{
    replay *r = user;
    if (!kprof_gate_enter_exclusive(0))
        return NULL;
    atomic_store(&r->begun, true);
    wait_ms(SHORT_MS);
    atomic_store(&r->over, true);
    kprof_gate_leave_exclusive();
    return NULL;
}

TEST(test_awaits_the_end_of_a_replay)
{
    replay r = {.begun = false};
    assert_int_equal(pthread_create(&r.thread, NULL, replay_shortly, &r), 0);
    while (!atomic_load(&r.begun))
        wait_ms(1);
    kprof_gate_await_exclusive(LONG_MS);
    assert_true(atomic_load(&r.over));
    pthread_join(r.thread, NULL);
}

static void *replay_until_told(void *user)
{
    replay *r = user;
    if (!kprof_gate_enter_exclusive(0))
        return NULL;
    atomic_store(&r->begun, true);
    while (!atomic_load(&r->over))
        wait_ms(1);
    kprof_gate_leave_exclusive();
    return NULL;
}

TEST(test_awaits_nothing_for_ever)
{
    visitor v;
    replay r = {.begun = false};
    kprof_gate_await_exclusive(ENDLESS_MS);
    start_visit(&v, 1);
    await_inside(&v);
    kprof_gate_await_exclusive(ENDLESS_MS);
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_await_exclusive(ENDLESS_MS); /* its own */
    kprof_gate_leave_exclusive();
    assert_int_equal(pthread_create(&r.thread, NULL, replay_until_told, &r), 0);
    while (!atomic_load(&r.begun))
        wait_ms(1);
    kprof_gate_await_exclusive(SHORT_MS);
    atomic_store(&r.over, true);
    pthread_join(r.thread, NULL);
}

static void *ask_whose(void *user)
{
    *(bool *)user = kprof_gate_is_own();
    return NULL;
}

TEST(test_knows_its_owner)
{
    visitor v;
    pthread_t other;
    bool is_others = true;
    assert_false(kprof_gate_is_own());
    assert_true(kprof_gate_enter_exclusive(0));
    assert_true(kprof_gate_is_own());
    assert_int_equal(pthread_create(&other, NULL, ask_whose, &is_others), 0);
    pthread_join(other, NULL);
    assert_false(is_others);
    kprof_gate_leave_exclusive();
    assert_false(kprof_gate_is_own());
    start_visit(&v, 1);
    await_inside(&v);
    assert_false(kprof_gate_enter_exclusive(0));
    assert_false(kprof_gate_is_own()); /* not for one that could not be alone */
    end_visit(&v);
}

TEST(test_nested_calls_count_once)
{
    visitor v;
    start_visit(&v, 3);
    await_inside(&v);
    assert_false(kprof_gate_enter_exclusive(SHORT_MS));
    end_visit(&v);
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

/* A thread inside may nest even while another one waits to be alone: else both would wait for ever. */
static void *nest_while_awaited(void *user)
{
    visitor *v = user;
    kprof_gate_enter_shared();
    atomic_store(&v->inside, true);
    wait_ms(SHORT_MS);
    kprof_gate_enter_shared();
    kprof_gate_leave_shared();
    kprof_gate_leave_shared();
    return NULL;
}

TEST(test_nesting_does_not_wait)
{
    visitor v = {.depth = 1};
    assert_int_equal(pthread_create(&v.thread, NULL, nest_while_awaited, &v), 0);
    await_inside(&v);
    assert_true(kprof_gate_enter_exclusive(LONG_MS));
    kprof_gate_leave_exclusive();
    pthread_join(v.thread, NULL);
}

TEST(test_owner_passes_its_own_gate)
{
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_enter_shared();
    kprof_gate_leave_shared();
    kprof_gate_leave_exclusive();
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

TEST(test_leaving_twice_is_harmless)
{
    kprof_gate_leave_shared();
    assert_true(kprof_gate_enter_exclusive(0));
    kprof_gate_leave_exclusive();
}

TEST(test_forked_child_starts_empty)
{
    int status;
    visitor v;
    start_visit(&v, 1);
    await_inside(&v);
    pid_t pid = fork();
    if (pid == 0) {
        kprof_gate_reset();
        _exit(kprof_gate_enter_exclusive(0) ? 0 : 1);
    }
    end_visit(&v);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* What a signal handler of the application finds that exits while its thread waits to be alone. */
static struct {
    atomic_bool called, entered;
} handler;

static void exit_in_handler(int number)
{
    atomic_store(&handler.entered, kprof_gate_enter_exclusive(ENDLESS_MS));
    kprof_gate_await_exclusive(ENDLESS_MS);
    atomic_store(&handler.called, true);
}

typedef struct interruption {
    pthread_t waiting;
    visitor *visitor; /* who is waited for */
} interruption;

static void *interrupt_and_let_go(void *user)
{
    const interruption *i = user;
    while (!atomic_load(&kprof_the_gate.exclusive))
        wait_ms(1);
    pthread_kill(i->waiting, SIGUSR1);
    while (!atomic_load(&handler.called))
        wait_ms(1);
    atomic_store(&i->visitor->may_leave, true);
    return NULL;
}

TEST(test_handler_within_the_wait)
{
    visitor v;
    pthread_t helper;
    interruption i = {pthread_self(), &v};
    struct sigaction action = {.sa_handler = exit_in_handler};
    sigaction(SIGUSR1, &action, NULL);
    start_visit(&v, 1);
    await_inside(&v);
    assert_int_equal(pthread_create(&helper, NULL, interrupt_and_let_go, &i), 0);
    assert_true(kprof_gate_enter_exclusive(LONG_MS));
    assert_false(atomic_load(&handler.entered));
    kprof_gate_leave_exclusive();
    pthread_join(helper, NULL);
    pthread_join(v.thread, NULL);
}

/* Everybody at once: `guarded` is only ever changed by one thread alone, and whoever wants to be alone always gets it,
 * since no visit is long. */
static struct {
    long guarded;
    atomic_int inside, refused;
    atomic_long read;
} crowd;

static void *jostle(void *user)
{
    unsigned number = *(const unsigned *)user;
    for (unsigned i = 0; i < VISITS; i++) {
        if ((i + number) % 4 > 0) {
            kprof_gate_enter_shared();
            atomic_fetch_add(&crowd.inside, 1);
            atomic_fetch_add(&crowd.read, crowd.guarded > 0);
            atomic_fetch_sub(&crowd.inside, 1);
            kprof_gate_leave_shared();
        } else if (kprof_gate_enter_exclusive(LONG_MS)) {
            crowd.guarded += atomic_load(&crowd.inside) == 0;
            kprof_gate_leave_exclusive();
        } else {
            atomic_fetch_add(&crowd.refused, 1);
        }
    }
    return NULL;
}

TEST(test_crowd)
{
    pthread_t threads[8];
    unsigned numbers[8];
    for (unsigned i = 0; i < 8; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, jostle, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd.refused), 0);
    assert_int_equal(crowd.guarded, 8 * VISITS / 4);
}

int main(void)
{
    kprof_engine.device = &device_ops;
    kprof_engine.waits.hold_ns = HOLD_MS * MS_NS;
    return run_all_tests();
}
