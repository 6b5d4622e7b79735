/* Native call stacks are those that glibc finds, also where code has gone and other code is at its addresses. */
#include "callstack/native.h"
#include "callstack/stacks.h"
#include "core/strbuf.h"
#include "test.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MOST 200

typedef void called(void *user);
typedef void calls(called *back, void *user, size_t bytes);

static __thread kprof_unwind_rules rules;
static __thread unsigned checks, steps;

static bool is_of_test(const void *address)
{
    Dl_info here, there;
    return dladdr((const void *)(uintptr_t)is_of_test, &here) && dladdr(address, &there) &&
           here.dli_fbase == there.dli_fbase;
}

/* Without the frames of this program that are innermost, since kprof leaves out its own. */
static size_t find_by_glibc(uintptr_t *out)
{
    void *frames[MOST + 16];
    const int count = backtrace(frames, MOST + 16);
    int first = 0;
    while (first < count && !is_of_test(frames[first])) /* a sanitizer's */
        first++;
    while (first < count && is_of_test(frames[first]))
        first++;
    memcpy(out, frames + first, (size_t)(count - first) * sizeof *out);
    return (size_t)(count - first);
}

static void check_here(void *user)
{
    uintptr_t wanted[MOST + 16], found[MOST];
    bool is_cut = true;
    (void)user;
    kprof_unwind_begin(&rules, kprof_unwind_modules());
    const size_t count = kprof_native_walk(&rules, found, MOST, &is_cut);
    assert_int_equal(count, find_by_glibc(wanted));
    assert_memory_equal(found, wanted, count * sizeof *found);
    assert_false(is_cut);
    checks++;
}

/* kprof finds the way without glibc. */
__attribute__((noinline)) static void check_way(void *user)
{
    const uintptr_t *here = __builtin_frame_address(0);
    kprof_unwind_frame frame = {.frame = here[0], .address = here[1], .stack = (uintptr_t)(here + 2)};
    kprof_unwind_step step = KPROF_UNWIND_CALLER;
    kprof_unwind_begin(&rules, kprof_unwind_modules());
    for (; step == KPROF_UNWIND_CALLER; steps++)
        step = kprof_unwind_caller(&rules, &frame);
#ifdef __x86_64__
    assert_int_equal(step, KPROF_UNWIND_OUTERMOST);
#endif
    check_here(user);
}

static void *load(const char *which)
{
    void *module = dlopen(which, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        fail_msg("%s", dlerror());
    return module;
}

static calls *function_of(void *module, const char *name)
{
    void *found = dlsym(module, name);
    calls *function;
    assert_non_null(found);
    memcpy(&function, &found, sizeof function); /* NOLINT(bugprone-sizeof-expression): a function's address */
    return function;
}

/* One function calls the next. */
typedef struct chain {
    calls *functions[8];
    size_t bytes[8], count, at;
    called *last;
} chain;

static void go_on(void *user)
{
    chain *c = user;
    const size_t at = c->at++;
    if (at < c->count)
        c->functions[at](go_on, c, c->bytes[at]);
    else
        c->last(NULL);
    c->at = at;
}

static int compare(const void *a, const void *b, void *user)
{
    (void)a, (void)b;
    go_on(user);
    return 0;
}

static void *run_chains(void *user)
{
    void *module = load(KPROF_FRAMES_A);
    static const char *const names[] = {"through_plain", "through_sized", "through_aligned"};
    char two[2] = "ab";
    kprof_native_prepare();
    for (unsigned way = 0; way < 729; way++) { /* the same function, with callers, sizes and callees that differ */
        chain c = {.count = 6, .last = check_way};
        for (unsigned i = 0, left = way; i < c.count; i++, left /= 3) {
            c.functions[i] = function_of(module, names[left % 3]);
            c.bytes[i] = 16 * (size_t)(way % 7 + i);
        }
        if (way % 2)
            go_on(&c);
        else
            qsort_r(two, 2, 1, compare, &c); /* of libc */
    }
    dlclose(module);
    return user;
}

TEST(test_frames_of_all_kinds)
{
    pthread_t thread;
    run_chains(NULL);
    assert_true(checks >= 729 && steps > 8 * checks);
    assert_int_equal(pthread_create(&thread, NULL, run_chains, NULL), 0);
    pthread_join(thread, NULL);
}

static void handle(int number)
{
    (void)number;
    check_here(NULL);
}

static void interrupt(void *user)
{
    (void)user;
    raise(SIGUSR1);
}

TEST(test_signal)
{
    void *module = load(KPROF_FRAMES_A);
    const unsigned before = checks;
    void *innermost_frame;
    if (backtrace(&innermost_frame, 1) != 1 || !is_of_test(innermost_frame))
        skip(); /* a sanitizer has put itself between */
    signal(SIGUSR1, handle);
    for (size_t bytes = 16; bytes < 64; bytes += 16)
        function_of(module, "through_sized")(interrupt, NULL, bytes);
    assert_int_equal(checks, before + 3);
    dlclose(module);
}

static char files[64][256];
static kprof_stack stack;
static uint32_t innermost;

static void keep_frame(const kprof_stack_frame *frame)
{
    assert_true(frame->number < COUNT_OF(files));
    snprintf(files[frame->number], sizeof *files, "%s", frame->file);
}

static void keep_stack(const kprof_stack *taken)
{
    stack = *taken;
    innermost = taken->frames[0];
}

static const kprof_stack_hooks hooks = {keep_frame, keep_stack};

static void take(void *user)
{
    kprof_stack_frame frame;
    const uint32_t number = kprof_stacks_take(KPROF_STACK_NATIVE, &hooks);
    assert_int_equal(kprof_stacks_read(number, true, &frame, 1), 1);
    assert_string_equal(frame.file, user);
    assert_string_equal(frame.function, "through_plain");
}

/* The linker lays a module where one of its size was that is gone. */
TEST(test_module_where_another_was)
{
    uintptr_t last = 0;
    unsigned same = 0;
    kprof_native_prepare();
    for (unsigned i = 0; i < 20; i++) {
        char *path = i % 2 ? KPROF_FRAMES_A : KPROF_FRAMES_B;
        void *module = load(path);
        calls *function = function_of(module, "through_plain");
        same += (uintptr_t)function == last;
        last = (uintptr_t)function;
        function(check_way, NULL, 0);
        function(take, path, 0);
        dlclose(module);
    }
    if (same == 0)
        skip();
}

#ifdef __x86_64__
typedef void registers(void *);

static registers *of_libgcc(const char *name)
{
    void *found = dlsym(load("libgcc_s.so.1"), name);
    registers *function;
    assert_non_null(found);
    memcpy(&function, &found, sizeof function); /* NOLINT(bugprone-sizeof-expression) */
    return function;
}

/* A function that a program makes, which has `bytes` on the stack as it calls what it is given, and its table. */
static void generate(uint8_t *code, uint8_t *table, uint8_t bytes)
{
    const uint8_t made[] = {0x48, 0x81, 0xec, bytes, 0, 0, 0, /* sub $bytes, %rsp */
                            0xff, 0xd7,                       /* call *%rdi */
                            0x48, 0x81, 0xc4, bytes, 0, 0, 0, /* add $bytes, %rsp */
                            0xc3};
    const uint8_t common[] = {0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0};
    const uint8_t moves[] = {0, 0x47, 0x0e, (uint8_t)(bytes + 8), 0, 0, 0, 0}; /* after seven bytes */
    const uint64_t span[] = {(uintptr_t)code, sizeof made};
    const uint32_t common_bytes = sizeof common, own_bytes = 4 + sizeof span + sizeof moves,
                   back = 4 + common_bytes + 4;
    memcpy(code, made, sizeof made);
    memset(table, 0, 256);
    memcpy(table, &common_bytes, 4);
    memcpy(table + 4, common, sizeof common);
    table += 4 + common_bytes;
    memcpy(table, &own_bytes, 4);
    memcpy(table + 4, &back, 4);
    memcpy(table + 8, span, sizeof span);
    memcpy(table + 8 + sizeof span, moves, sizeof moves);
}

TEST(test_generated_code_where_other_was)
{
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static uint8_t table[256];
    if (code == MAP_FAILED)
        skip();
    kprof_native_prepare();
    for (unsigned i = 0; i < 10; i++) {
        void (*function)(called *);
        generate(code, table, (uint8_t)(24 + 16 * (i % 5)));
        of_libgcc("__register_frame")(table);
        memcpy(&function, &code, sizeof function); /* NOLINT(bugprone-sizeof-expression) */
        function(check_way);
        of_libgcc("__deregister_frame")(table);
    }
    munmap(code, 4096);
}
#endif
