/* Loaded into a real Python with ctypes: takes the call stack of the calling thread as a launch would, and hands it
 * over as text, or says how long it took. */
#include "callstack/memory.h"
#include "callstack/native.h"
#include "callstack/python.h"
#include "callstack/stacks.h"
#include "core/strbuf.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default")))
#define MOST  (1 << 16)

static struct seen_frame {
    bool is_native;
    char *function, *file;
    uint64_t place;
} frames[MOST + 1];
static kprof_stack stacks[MOST + 1];
static uint32_t frame_count, stack_count;

SHOWN const char *take(int kinds);
SHOWN double cost_us(int kinds, int repeats);
SHOWN int taken_stacks(void);
SHOWN int taken_frames(void);
SHOWN const char *take_in_c_thread(int kinds);
SHOWN int native_is_as_of_glibc(void);
SHOWN int walk_is_harmless(void *state, size_t bytes, unsigned seed);

static void keep_frame(const kprof_stack_frame *frame)
{
    if (frame->number != frame_count + 1 || frame_count == MOST)
        abort();
    frames[++frame_count] =
        (struct seen_frame){frame->is_native, kprof_strdup(frame->function), kprof_strdup(frame->file), frame->place};
}

static void keep_stack(const kprof_stack *stack)
{
    if (stack->number != stack_count + 1 || stack_count == MOST)
        abort();
    kprof_stack *kept = &stacks[++stack_count];
    *kept = *stack;
    uint32_t *copy = malloc(stack->count * sizeof *copy + 1);
    memcpy(copy, stack->frames, stack->count * sizeof *copy);
    kept->frames = copy;
    kept->reason = kprof_strdup(stack->reason);
}

static const kprof_stack_hooks hooks = {keep_frame, keep_stack};

/* A line for each frame: kind, function, file and place, by tabs; a last one says whether there are more, and why there
 * are none. */
const char *take(int kinds)
{
    static __thread char *text;
    kprof_strbuf out = KPROF_STRBUF_INIT;
    kprof_stacks_prepare(kinds);
    const uint32_t number = kprof_stacks_take(kinds, &hooks);
    if (number == 0)
        return "no memory";
    const kprof_stack *stack = &stacks[number];
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct seen_frame *frame = &frames[stack->frames[i]];
        kprof_strbuf_printf(&out, "%s\t%s\t%s\t%llu\n", frame->is_native ? "native" : "python", frame->function,
                            frame->file, (unsigned long long)frame->place);
    }
    kprof_strbuf_printf(&out, "%s\t%s", stack->is_cut ? "cut" : "whole", stack->reason);
    free(text);
    return text = kprof_strbuf_take(&out);
}

/* Of the calling thread, whatever else the machine does. */
static double processor_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1000;
}

double cost_us(int kinds, int repeats)
{
    kprof_stacks_prepare(kinds);
    const double before = processor_us(), start = processor_us(), clock_us = start - before;
    for (int i = 0; i < repeats; i++)
        (void)kprof_stacks_take(kinds, &hooks);
    return (processor_us() - start - clock_us) / repeats;
}

/* Outside of this module, which both begin in. */
int native_is_as_of_glibc(void)
{
    static __thread kprof_unwind_rules rules;
    uintptr_t found[KPROF_STACK_FRAMES_MAX];
    void *wanted[2 * KPROF_STACK_FRAMES_MAX];
    bool is_cut;
    kprof_stacks_prepare(KPROF_STACK_NATIVE);
    kprof_unwind_begin(&rules, kprof_unwind_modules());
    const size_t count = kprof_native_walk(&rules, found, KPROF_STACK_FRAMES_MAX, &is_cut);
    const int got = backtrace(wanted, 2 * KPROF_STACK_FRAMES_MAX);
    int first = 0;
    while (first < got && (uintptr_t)wanted[first] != found[0])
        first++;
    const size_t left = (size_t)(got - first);
    return left > 0 && count == (is_cut ? KPROF_STACK_FRAMES_MAX : left) &&
           memcmp(found, wanted + first, count * sizeof *found) == 0;
}

int taken_stacks(void)
{
    return (int)stack_count;
}

int taken_frames(void)
{
    return (int)frame_count;
}

static void *in_c_thread(void *user)
{
    return kprof_strdup(take(*(int *)user));
}

/* In a thread that Python knows nothing of. */
const char *take_in_c_thread(int kinds)
{
    pthread_t thread;
    void *text = NULL;
    pthread_create(&thread, NULL, in_c_thread, &kinds);
    pthread_join(thread, &text);
    return text;
}

/* Walk `state`, `bytes` of anything, as if it were the thread's, with pointers in it to anywhere. 1: as always. */
int walk_is_harmless(void *state, size_t bytes, unsigned seed)
{
    static kprof_memory *memory;
    static kprof_python_site sites[KPROF_STACK_FRAMES_MAX];
    static kprof_python_text text;
    kprof_python_frames found = {.sites = sites, .most = KPROF_STACK_FRAMES_MAX};
    uintptr_t *words = state;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        seed = seed * 1103515245 + 12345;
        const unsigned way = seed >> 16 & 7;
        if (way < 3)
            words[i] = (uintptr_t)(words + (seed >> 20) % (bytes / sizeof *words)); /* to itself, in circles */
        else if (way == 3)
            words[i] = (uintptr_t)rand() << 16 ^ (uintptr_t)rand();
        else if (way == 4)
            words[i] = UINTPTR_MAX - (seed & 255);
        else if (way == 5)
            words[i] = seed & 4095;
    }
    if (!memory)
        memory = kprof_memory_new();
    kprof_memory_begin(memory);
    kprof_python_walk_state(memory, (uintptr_t)state, &found);
    for (size_t i = 0; i < found.count; i++)
        (void)kprof_python_describe(memory, &sites[i], &text);
    const kprof_python_site wild = {.address = words[1]};
    (void)kprof_python_describe(memory, &wild, &text);
    return found.count <= KPROF_STACK_FRAMES_MAX;
}
