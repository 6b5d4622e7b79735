/* Walks of the same place find the same few frames. So a frame is looked up by the address of its code, and only a new
 * one has its names and its line read. */
#include "callstack/stacks.h"

#include "callstack/memory.h"
#include "callstack/native.h"
#include "callstack/python.h"
#include "core/bytes.h"
#include "core/hold.h"
#include "core/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Hash tables of numbers. The items are in an array, in the order of their numbers. */
typedef struct slot {
    uint32_t hash, number; /* from 1; 0: nothing */
} slot;

typedef struct table {
    slot *slots; /* [size], a power of two */
    size_t size, count;
} table;

/* A frame that is known by where its code is. */
typedef struct place {
    kprof_python_site site; /* of native code the return address, and an offset of -1 */
    uint64_t stamp;         /* another one: other code may be there by now */
    uint32_t frame;         /* 0: not known yet */
} place;

/* A frame by what it says. */
typedef struct known_frame {
    char *function, *file; /* one allocation */
    char *symbol;          /* NULL: nobody has asked for it */
    uint64_t place;
    bool is_native;
} known_frame;

typedef struct known_stack {
    uint32_t *frames;
    uint32_t count;
    bool is_cut;
} known_stack;

/* Each thread has one: its walks use it, and it holds what the last of them found. */
typedef struct walk {
    kprof_memory *memory;
    kprof_unwind_rules rules;
    kprof_python_site sites[KPROF_STACK_FRAMES_MAX];
    uintptr_t addresses[KPROF_STACK_FRAMES_MAX];
    size_t python_count, native_count;
    uint32_t frames[2 * KPROF_STACK_FRAMES_MAX];
} walk;

static struct all_stacks {
    pthread_mutex_t mutex;
    pthread_once_t once;
    pthread_key_t thread_end;
    bool is_full; /* and said so */
    table place_table, frame_table, stack_table;
    place *places;
    known_frame *frames;
    known_stack *stacks;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static __thread walk *own;

static void free_walk(void *user)
{
    walk *gone = user;
    kprof_memory_free(gone->memory);
    free(gone);
}

static void prepare_threads(void)
{
    pthread_key_create(&all.thread_end, free_walk);
}

void kprof_stacks_prepare(kprof_stack_kinds kinds)
{
    if (kinds & KPROF_STACK_NATIVE)
        kprof_native_prepare();
}

/* NULL when out of memory. */
static walk *own_walk(void)
{
    pthread_once(&all.once, prepare_threads);
    walk *made = own ? NULL : calloc(1, sizeof *made);
    if (!made)
        return own;
    made->memory = kprof_memory_new();
    if (!made->memory || pthread_setspecific(all.thread_end, made) != 0) {
        free_walk(made);
        return NULL;
    }
    return own = made;
}

/* Return the number of the next item with this hash, from the slot *at on; 0: there is none, and *at is a free slot.
 * Tables are half empty, so a search ends. */
static uint32_t search(const table *t, uint32_t hash, size_t *at)
{
    for (*at &= t->size - 1; t->slots[*at].number && t->slots[*at].hash != hash;)
        *at = (*at + 1) & (t->size - 1);
    return t->slots[*at].number;
}

static bool grow(table *t)
{
    table grown = {.size = t->size ? 2 * t->size : 1024, .count = t->count};
    grown.slots = calloc(grown.size, sizeof *grown.slots);
    for (size_t i = 0; i < t->size && grown.slots; i++) {
        size_t at = t->slots[i].hash;
        while (t->slots[i].number && search(&grown, t->slots[i].hash, &at))
            at++;
        if (t->slots[i].number)
            grown.slots[at] = t->slots[i];
    }
    if (!grown.slots)
        return false;
    free(t->slots);
    *t = grown;
    return true;
}

/* Have twice the slots, once half are taken. */
static bool make_slots(table *t)
{
    return 2 * (t->count + 1) <= t->size || grow(t);
}

/* Number the item that has just been appended, in the slot where a search for it has ended. */
static uint32_t number_next(table *t, uint32_t hash, size_t at)
{
    t->slots[at] = (slot){hash, (uint32_t)++t->count};
    return t->slots[at].number;
}

static uint32_t mix(uint64_t value)
{
    value = (value ^ value >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(value ^ value >> 32);
}

static bool is_same_frame(const known_frame *known, const kprof_stack_frame *frame)
{
    return known->place == frame->place && known->is_native == frame->is_native &&
           strcmp(known->function, frame->function) == 0 && strcmp(known->file, frame->file) == 0;
}

/* The number of a frame that says this; 0 where there is no room. */
static uint32_t find_frame(kprof_stack_frame *frame, const kprof_stack_hooks *hooks)
{
    table *t = &all.frame_table;
    const size_t name_bytes = strlen(frame->function) + 1, file_bytes = strlen(frame->file) + 1;
    const uint64_t of_name = kprof_hash(KPROF_HASH_START, frame->function, name_bytes);
    const uint32_t hash = mix(kprof_hash(of_name, frame->file, file_bytes) + frame->place * 31 + frame->is_native);
    if (!make_slots(t))
        return 0;
    size_t at = hash;
    for (uint32_t number; (number = search(t, hash, &at)); at++)
        if (is_same_frame(&all.frames[number - 1], frame))
            return number;
    known_frame *added = t->count < KPROF_FRAMES_MAX ? KPROF_APPEND(all.frames, t->count) : NULL;
    char *texts = added ? malloc(name_bytes + file_bytes) : NULL;
    if (!texts)
        return 0;
    memcpy(texts, frame->function, name_bytes);
    memcpy(texts + name_bytes, frame->file, file_bytes);
    *added = (known_frame){texts, texts + name_bytes, NULL, frame->place, frame->is_native};
    frame->number = number_next(t, hash, at);
    hooks->frame(frame);
    return frame->number;
}

/* The place of a site, new or not; NULL where there is no room. */
static place *find_place(kprof_python_site site, uint64_t stamp)
{
    table *t = &all.place_table;
    const uint32_t hash = mix(site.address * 31 + (uint32_t)site.offset);
    size_t at = hash;
    if (!make_slots(t))
        return NULL;
    for (uint32_t number; (number = search(t, hash, &at)); at++) {
        place *known = &all.places[number - 1];
        if (known->site.address == site.address && known->site.offset == site.offset) {
            if (known->stamp != stamp)
                *known = (place){site, stamp, 0};
            return known;
        }
    }
    place *added = t->count < KPROF_FRAMES_MAX ? KPROF_APPEND(all.places, t->count) : NULL;
    if (!added)
        return NULL;
    *added = (place){site, stamp, 0};
    (void)number_next(t, hash, at);
    return added;
}

/* The number of the frame; 0: there is no room. False: there is none, since no code is there. */
static bool python_frame(kprof_memory *memory, const kprof_python_site *site, const kprof_stack_hooks *hooks,
                         uint32_t *number)
{
    static kprof_python_text text;
    place *found = find_place(*site, kprof_python_freed(site->address));
    if (found && found->frame == 0) {
        if (!kprof_python_describe(memory, site, &text))
            return false;
        kprof_stack_frame frame = {.function = text.function, .file = text.file, .place = text.line};
        found->frame = find_frame(&frame, hooks);
    }
    *number = found ? found->frame : 0;
    return true;
}

static uint32_t native_frame(uintptr_t address, uint64_t modules, const kprof_stack_hooks *hooks)
{
    place *found = find_place((kprof_python_site){.address = address, .offset = -1}, modules);
    if (!found)
        return 0;
    if (found->frame == 0) {
        kprof_stack_frame frame = {.is_native = true, .function = "", .file = ""};
        const char *module = kprof_native_module(address, &frame.place);
        frame.file = module ? module : "";
        frame.place = module ? frame.place : 0; /* the address would differ from run to run */
        found->frame = find_frame(&frame, hooks);
    }
    return found->frame;
}

/* The number of a stack; 0 where there is no room. */
static uint32_t find_stack(kprof_stack *stack, const kprof_stack_hooks *hooks)
{
    table *t = &all.stack_table;
    const size_t bytes = stack->count * sizeof *stack->frames;
    const uint32_t of_reason = kprof_crc32c(stack->is_cut, stack->reason, strlen(stack->reason));
    const uint32_t hash = mix(kprof_crc32c(of_reason, stack->frames, bytes));
    if (!make_slots(t))
        return 0;
    size_t at = hash;
    for (uint32_t number; (number = search(t, hash, &at)); at++) {
        const known_stack *known = &all.stacks[number - 1];
        if (known->count == stack->count && known->is_cut == stack->is_cut &&
            memcmp(known->frames, stack->frames, bytes) == 0)
            return number;
    }
    known_stack *added = t->count < KPROF_STACKS_MAX ? KPROF_APPEND(all.stacks, t->count) : NULL;
    uint32_t *copy = added ? malloc(bytes + 1) : NULL;
    if (!copy)
        return 0;
    memcpy(copy, stack->frames, bytes);
    *added = (known_stack){copy, stack->count, stack->is_cut};
    stack->number = number_next(t, hash, at);
    hooks->stack(stack);
    return stack->number;
}

/* Number the frames that were found, and then their stack. Needs the mutex. */
static uint32_t number_of(walk *found, kprof_stack_kinds kinds, kprof_stack *stack, const kprof_stack_hooks *hooks)
{
    bool whole = true;
    for (size_t i = 0; i < found->python_count && whole; i++)
        if (python_frame(found->memory, &found->sites[i], hooks, &found->frames[stack->count]))
            whole = found->frames[stack->count++] != 0;
    if (kinds & KPROF_STACK_PYTHON && stack->count == 0 && !*stack->reason)
        stack->reason = "the thread runs no Python";
    for (size_t i = 0; i < found->native_count && whole; i++) {
        found->frames[stack->count] = native_frame(found->addresses[i], found->rules.modules, hooks);
        whole = found->frames[stack->count++] != 0;
    }
    const uint32_t number = whole ? find_stack(stack, hooks) : 0;
    if (number == 0 && !all.is_full) {
        all.is_full = true;
        kprof_log(KPROF_LOG_WARNING,
                  "the call stacks of launches differ too much to keep more of them, or memory has run out; later "
                  "launches with other stacks have none in the report");
    }
    return number;
}

size_t kprof_stacks_read(uint32_t number, bool native, kprof_stack_frame *out, size_t most)
{
    size_t count = 0;
    KPROF_HOLD(all.mutex);
    const known_stack *stack = number > 0 && number <= all.stack_table.count ? &all.stacks[number - 1] : NULL;
    for (uint32_t i = 0; stack && i < stack->count && count < most; i++) {
        known_frame *frame = &all.frames[stack->frames[i] - 1];
        if (frame->is_native != native)
            continue;
        if (native && !frame->symbol) /* many stacks share a frame, and its symbol is looked up once */
            frame->symbol = kprof_symbol_find(frame->file, frame->place);
        if (native && !frame->symbol)
            frame->symbol = kprof_strdup("");
        const char *function = frame->symbol ? frame->symbol : frame->function;
        out[count++] = (kprof_stack_frame){stack->frames[i], native, function, frame->file, frame->place};
    }
    return count;
}

uint32_t kprof_stacks_take(kprof_stack_kinds kinds, const kprof_stack_hooks *hooks)
{
    walk *found = own_walk();
    if (!found)
        return 0;
    kprof_python_frames python = {.sites = found->sites, .most = KPROF_STACK_FRAMES_MAX, .reason = ""};
    bool is_native_cut = false;
    found->native_count = 0;
    if (kinds & KPROF_STACK_PYTHON) {
        kprof_memory_begin(found->memory);
        kprof_python_walk(found->memory, &python);
    }
    if (kinds & KPROF_STACK_NATIVE) {
        kprof_unwind_begin(&found->rules, kprof_unwind_modules());
        found->native_count =
            kprof_native_walk(&found->rules, found->addresses, KPROF_STACK_FRAMES_MAX, &is_native_cut);
    }
    found->python_count = python.count;
    kprof_stack stack = {.frames = found->frames, .is_cut = python.is_cut || is_native_cut, .reason = python.reason};
    KPROF_HOLD(all.mutex);
    return number_of(found, kinds, &stack, hooks);
}
