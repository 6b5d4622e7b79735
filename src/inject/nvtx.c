/* A stack of names for each thread, and a list of the ranges that are started. Functions here are called by NVTX in the
 * application's threads: they do not fail, and forget what is too much. */
#include "inject/nvtx.h"

#include "core/clean.h"
#include "core/deadline.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/nvtx.h"
#include "core/ranges.h"
#include "core/torch.h"
#include "inject/engine.h"
#include "inject/forward.h"
#include "inject/range.h"
#include "inject/stacks.h"
#include "inject/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

kprof_nvtx_state kprof_the_nvtx;
static kprof_nvtx_state *const nvtx = &kprof_the_nvtx;

#define FIRST_DEPTH     8
#define MISSED_BYTES    200                 /* of the ranges of a launch, in a message */
#define MISSED_LAUNCHES 10000               /* note ranges of this many: looking takes time */
#define LONGEST_LOCK_NS INT64_C(2000000000) /* that the end of a trace waits for a thread in NVTX */
#define NO_RANGE        (-1)                /* what NVTX returns where nothing could be pushed or popped */
#define PUSHED          "PushPop"
#define STARTED         "StartEnd"

/* The ranges that a thread has pushed. It is freed with the thread. */
typedef struct kprof_nvtx_stack {
    struct kprof_nvtx_stack *next;
    pthread_mutex_t mutex;   /* only launches with --nvtx-push-pop-scope process ever make the thread wait */
    kprof_nvtx_open *ranges; /* [capacity] */
    size_t depth, capacity;
    size_t left_out; /* pushed when the stack was full, and not popped yet */
} stack;

static __thread stack *pushed; /* NULL until the thread pushes something */
static pthread_key_t thread_end;

static void lock(void)
{
    pthread_mutex_lock(&nvtx->mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&nvtx->mutex);
}

/* The filter, if it is to know of ranges that begin and end. */
static kprof_filter *find_counting_filter(void)
{
    kprof_filter *filter = kprof_engine.process.filter;
    return filter && kprof_filter_counts_ranges(filter) ? filter : NULL;
}

static bool limits_trace(void)
{
    return kprof_engine.process.config.only_records;
}

static void end_marked(uint64_t marks)
{
    const bool is_measured = marks & KPROF_RANGE_IS_MEASURED;
    if (is_measured && !limits_trace())
        kprof_range_end();
    kprof_filter *filter = marks ? find_counting_filter() : NULL;
    if (filter)
        kprof_filter_end_range(filter, marks);
    if (marks && limits_trace())
        kprof_trace_follow(-is_measured);
}

static void trace_range(const kprof_nvtx_open *range, const char *style, bool is_over);

static void forget_thread(void *ending)
{
    stack **link = &nvtx->stacks;
    pushed = NULL;
    lock();
    while (*link && *link != ending)
        link = &(*link)->next;
    if (*link)
        *link = (*link)->next;
    unlock();
    for (size_t i = 0; i < ((stack *)ending)->depth; i++) {
        trace_range(&((stack *)ending)->ranges[i], PUSHED, false);
        end_marked(((stack *)ending)->ranges[i].marks);
    }
    pthread_mutex_destroy(&((stack *)ending)->mutex);
    KPROF_FREE(((stack *)ending)->ranges, ending);
}

/* The calling thread's stack; NULL when out of memory. */
static stack *own_stack(void)
{
    stack *made = pushed ? NULL : calloc(1, sizeof *made);
    if (!made)
        return pushed;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_setspecific(thread_end, made);
    KPROF_HOLD(nvtx->mutex);
    made->next = nvtx->stacks;
    return pushed = nvtx->stacks = made;
}

/* A forked child may go on to use NVTX. */
static void prepare(void)
{
    pthread_mutex_init(&nvtx->mutex, NULL);
    nvtx->strings = calloc(KPROF_NVTX_STRINGS_MAX, sizeof *nvtx->strings);
    pthread_key_create(&thread_end, forget_thread);
    pthread_atfork(lock, unlock, unlock);
}

/* Return `out` with as much of a wide name as there is space for, as UTF-8; NULL: "". */
static const char *copy_wide_name(const wchar_t *name, char out[KPROF_NVTX_NAME_BYTES])
{
    size_t length = 0;
    for (; name && *name && length + 4 < KPROF_NVTX_NAME_BYTES; name++) {
        uint32_t code = (uint32_t)*name;
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            code = 0xfffd;
        unsigned char bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (unsigned char i = bytes; i-- > 1; code >>= 6)
            out[length + i] = (char)(0x80 | (code & 0x3f));
        out[length] = (char)(marks[bytes] | code);
        length += bytes;
    }
    out[length] = '\0';
    return out;
}

/* The text of a handle; "" for one that is none. */
static const char *at_handle(char *_Atomic *texts, size_t most, const void *handle)
{
    uintptr_t place = (uintptr_t)handle;
    const char *text = texts && place > 0 && place <= most ? atomic_load(&texts[place - 1]) : NULL;
    return text ? text : "";
}

/* A copy of `name` at the next place, or the one that has it already if `unique`. Returns the handle, NULL: none. */
static void *add_handle(char *_Atomic *texts, size_t *count, size_t most, const char *name)
{
    void *handle = NULL;
    bool unique = texts == nvtx->domains;
    KPROF_HOLD(nvtx->mutex);
    for (size_t i = 0; unique && i < *count && !handle; i++) {
        if (strcmp(texts[i], name) == 0)
            handle = (void *)(uintptr_t)(i + 1); /* NOLINT(performance-no-int-to-ptr): a handle, never followed */
    }
    char *copy = handle || !texts || *count == most ? NULL : strdup(name);
    if (copy) {
        atomic_store(&texts[*count], copy);
        handle = (void *)(uintptr_t)(++*count); /* NOLINT(performance-no-int-to-ptr) */
    }
    return handle;
}

static void copy_message(const kprof_nvtx_event *event, char out[KPROF_NVTX_NAME_BYTES])
{
    out[0] = '\0';
    if (!event || event->size < offsetof(kprof_nvtx_event, message) + sizeof event->message)
        return;
    if (event->message_type == KPROF_NVTX_REGISTERED)
        kprof_fit_text(out, KPROF_NVTX_NAME_BYTES,
                       at_handle(nvtx->strings, KPROF_NVTX_STRINGS_MAX, event->message.registered));
    else if (event->message_type == KPROF_NVTX_ASCII && event->message.ascii)
        kprof_fit_text(out, KPROF_NVTX_NAME_BYTES, event->message.ascii);
    else if (event->message_type == KPROF_NVTX_UNICODE)
        copy_wide_name(event->message.unicode, out);
}

/* Make space for one more range; false when there are too many. */
static bool make_space(stack *s)
{
    if (s->depth < s->capacity)
        return true;
    size_t capacity = s->capacity ? 2 * s->capacity : FIRST_DEPTH;
    kprof_nvtx_open *grown = capacity <= KPROF_NVTX_PUSHED_MAX ? realloc(s->ranges, capacity * sizeof *grown) : NULL;
    if (!grown)
        return false;
    s->ranges = grown;
    s->capacity = capacity;
    return true;
}

/* How deep the innermost range of a domain is, from 0; NO_RANGE when there is none. */
static int level_of(const stack *s, uint32_t domain)
{
    int level = NO_RANGE;
    for (size_t i = 0; i < s->depth; i++)
        level += s->ranges[i].domain == domain;
    return level;
}

static int64_t thread_id(void)
{
    static __thread int64_t id;
    return id = id ? id : gettid();
}

/* Note when and where a range begins. */
static void begin_trace(kprof_nvtx_open *range)
{
    range->start_ns = kprof_trace_now_ns();
    range->thread = range->start_ns ? thread_id() : 0;
}

/* `is_over`: it ends now, in this thread. */
static void trace_range(const kprof_nvtx_open *range, const char *style, bool is_over)
{
    const void *domain = (const void *)(uintptr_t)range->domain; /* NOLINT(performance-no-int-to-ptr) */
    if (range->start_ns == 0)
        return;
    kprof_trace_take_range(&(kprof_trace_range){
        .name = range->name,
        .domain = at_handle(nvtx->domains, KPROF_NVTX_DOMAINS_MAX, domain),
        .style = style,
        .start_ns = range->start_ns,
        .end_ns = is_over ? kprof_trace_now_ns() : -1,
        .thread = range->thread,
        .end_thread = is_over ? thread_id() : range->thread,
    });
}

/* The ranges that are open around a launch. */
typedef struct snapshot {
    kprof_nvtx_range items[KPROF_NVTX_RANGES_MAX];
    uint64_t order[KPROF_NVTX_RANGES_MAX]; /* of what is pushed; numbers of what is started */
    kprof_nvtx_ranges ranges;
    bool of_process;
    bool holds_lock; /* names of ranges that are started, or of other threads, stay while it is held */
} snapshot;

static kprof_nvtx_range range_of(const kprof_nvtx_open *range, bool is_started)
{
    const void *domain = (const void *)(uintptr_t)range->domain; /* NOLINT(performance-no-int-to-ptr) */
    return (kprof_nvtx_range){at_handle(nvtx->domains, KPROF_NVTX_DOMAINS_MAX, domain), range->name, is_started,
                              range->marks};
}

/* Add what a thread has pushed, in the order of pushing. */
static void add_stack(snapshot *s, const stack *from)
{
    for (size_t i = 0; i < from->depth && s->ranges.count < KPROF_NVTX_PUSHED_MAX; i++) {
        size_t place = s->ranges.count++;
        for (; place > 0 && s->order[place - 1] > from->ranges[i].id; place--) {
            s->items[place] = s->items[place - 1];
            s->order[place] = s->order[place - 1];
        }
        s->items[place] = range_of(&from->ranges[i], false);
        s->order[place] = from->ranges[i].id;
    }
}

/* The thread's own ranges come first, lest other threads leave no space for them. */
static void look(snapshot *s)
{
    s->ranges = (kprof_nvtx_ranges){s->items, 0};
    s->of_process = kprof_engine.process.config.nvtx_of_process;
    s->holds_lock = s->of_process || atomic_load(&nvtx->started_count) > 0;
    if (pushed)
        add_stack(s, pushed);
    if (s->holds_lock)
        lock();
    for (stack *other = s->of_process ? nvtx->stacks : NULL; other; other = other->next) {
        pthread_mutex_lock(&other->mutex);
        if (other != pushed)
            add_stack(s, other);
    }
    for (size_t i = 0; s->holds_lock && i < atomic_load(&nvtx->started_count); i++) {
        s->order[s->ranges.count] = nvtx->started[i].id;
        s->items[s->ranges.count++] = range_of(&nvtx->started[i], true);
    }
}

static void look_away(const snapshot *s)
{
    for (stack *other = s->of_process ? nvtx->stacks : NULL; other; other = other->next)
        pthread_mutex_unlock(&other->mutex);
    if (s->holds_lock)
        unlock();
}

/* The one copy of a text; NULL where there is no space for another. */
static const char *keep_text(const char *text)
{
    const char *kept = NULL;
    bool says = false;
    lock();
    const size_t bytes = strlen(text) + 1;
    size_t number = kprof_names_find(&nvtx->texts, text);
    if (number == KPROF_NAMES_NONE && nvtx->text_bytes + bytes <= KPROF_NVTX_TEXT_BYTES &&
        kprof_names_keep(&nvtx->texts, text, nvtx->texts.copies.count)) {
        number = nvtx->texts.copies.count - 1;
        nvtx->text_bytes += bytes;
    }
    if (number != KPROF_NAMES_NONE) {
        kept = nvtx->texts.copies.items[number];
    } else {
        says = !nvtx->texts_full;
        nvtx->texts_full = true;
    }
    unlock();
    if (says)
        kprof_log(KPROF_LOG_WARNING, "the NVTX ranges of launches differ too much to keep more of them; later launches "
                                     "in other ranges have none in the report");
    return kept;
}

static const char *keep_or_empty(const kprof_strbuf *text)
{
    const char *kept = text->length > 0 && !text->failed ? keep_text(text->data) : NULL;
    return kept ? kept : "";
}

/* Return the marks of the range that the calling thread has just pushed, or that was started with this number. */
static uint64_t begin_range(bool is_started, uint64_t id)
{
    kprof_filter *filter = find_counting_filter();
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    char domain[KPROF_NVTX_NAME_BYTES] = "", name[KPROF_NVTX_NAME_BYTES] = "";
    snapshot s;
    uint64_t marks = 0;
    if (!filter)
        return 0;
    look(&s);
    for (size_t i = s.ranges.count; i-- > 0;) {
        if (s.items[i].is_started == is_started && s.order[i] == id) {
            marks = kprof_filter_begin_range(filter, &s.ranges, i);
            snprintf(domain, sizeof domain, "%s", s.items[i].domain);
            snprintf(name, sizeof name, "%s", s.items[i].name);
            break;
        }
    }
    const bool is_measured = (marks & KPROF_RANGE_IS_MEASURED) && !limits_trace();
    if (is_measured)
        kprof_nvtx_put_text(&s.ranges, &text);
    look_away(&s);
    const uint32_t begins_in = is_measured && atomic_load(&kprof_engine.process.armed) ? kprof_launch_stack() : 0;
    if (is_measured && !kprof_range_begin(domain, name, keep_or_empty(&text), begins_in))
        marks &= ~KPROF_RANGE_IS_MEASURED;
    if (marks && limits_trace())
        kprof_trace_follow((marks & KPROF_RANGE_IS_MEASURED) != 0);
    return marks;
}

/* A range begins while as many are open as kprof follows. */
static void leave_out(void)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&is_told))
        kprof_log(KPROF_LOG_WARNING,
                  "%d NVTX ranges are open in a thread, or started and not ended: kprof leaves out those that begin "
                  "until one of them ends; does the program pop what it pushes?",
                  KPROF_NVTX_PUSHED_MAX);
    kprof_trace_lose_range();
}

static int domain_push_ex(void *domain, const kprof_nvtx_event *event)
{
    int level = NO_RANGE;
    stack *s = own_stack();
    if (!s)
        return NO_RANGE;
    pthread_mutex_lock(&s->mutex);
    const bool has_space = make_space(s);
    if (has_space) {
        kprof_nvtx_open *range = &s->ranges[s->depth++];
        range->domain = (uint32_t)(uintptr_t)domain;
        range->id = atomic_fetch_add(&nvtx->push_count, 1);
        range->marks = 0;
        copy_message(event, range->name);
        begin_trace(range);
        level = level_of(s, range->domain);
    } else {
        s->left_out++;
    }
    pthread_mutex_unlock(&s->mutex);
    if (has_space)
        kprof_forward_note(s->ranges[s->depth - 1].name);
    else
        leave_out();
    const uint64_t marks = has_space ? begin_range(false, s->ranges[s->depth - 1].id) : 0;
    if (marks) { /* no other thread changes the stack */
        pthread_mutex_lock(&s->mutex);
        s->ranges[s->depth - 1].marks = marks;
        pthread_mutex_unlock(&s->mutex);
    }
    return level;
}

static int pop_of(stack *s, uint32_t domain, kprof_nvtx_open *popped)
{
    int level = level_of(s, domain);
    if (s->left_out > 0) {
        s->left_out--;
        return NO_RANGE;
    }
    size_t at = s->depth;
    while (at > 0 && s->ranges[at - 1].domain != domain)
        at--;
    if (at == 0)
        return NO_RANGE;
    *popped = s->ranges[at - 1];
    memmove(&s->ranges[at - 1], &s->ranges[at], (s->depth - at) * sizeof *s->ranges);
    s->depth--;
    return level;
}

static int domain_pop(void *domain)
{
    kprof_nvtx_open popped = {.marks = 0};
    if (!pushed)
        return NO_RANGE;
    pthread_mutex_lock(&pushed->mutex);
    int level = pop_of(pushed, (uint32_t)(uintptr_t)domain, &popped);
    pthread_mutex_unlock(&pushed->mutex);
    trace_range(&popped, PUSHED, true);
    end_marked(popped.marks);
    return level;
}

static int pop(void)
{
    return domain_pop(NULL);
}

static size_t find_started(uint64_t id)
{
    const size_t count = atomic_load(&nvtx->started_count);
    return KPROF_FIND(i, count, nvtx->started[i].id == id);
}

/* Another thread may have ended the range meanwhile. */
static void mark_started(uint64_t id, uint64_t marks)
{
    if (!marks)
        return;
    lock();
    const size_t at = find_started(id);
    const bool is_open = at < atomic_load(&nvtx->started_count);
    if (is_open)
        nvtx->started[at].marks = marks;
    unlock();
    if (!is_open)
        end_marked(marks);
}

static uint64_t start_range(void *domain, const kprof_nvtx_event *event)
{
    kprof_nvtx_open range = {.domain = (uint32_t)(uintptr_t)domain};
    copy_message(event, range.name);
    begin_trace(&range);
    lock();
    if (!nvtx->started)
        nvtx->started = calloc(KPROF_NVTX_STARTED_MAX, sizeof *nvtx->started);
    uint64_t id = range.id = ++nvtx->last_id;
    size_t count = atomic_load(&nvtx->started_count);
    const bool has_space = nvtx->started && count < KPROF_NVTX_STARTED_MAX;
    if (has_space) {
        nvtx->started[count] = range;
        atomic_store(&nvtx->started_count, count + 1);
    }
    unlock();
    if (!has_space)
        leave_out();
    mark_started(id, has_space ? begin_range(true, id) : 0);
    return id;
}

static void end_range(uint64_t id)
{
    kprof_nvtx_open ended = {.marks = 0};
    lock();
    const size_t count = atomic_load(&nvtx->started_count), at = find_started(id);
    if (at < count) {
        ended = nvtx->started[at];
        memmove(&nvtx->started[at], &nvtx->started[at + 1], (count - at - 1) * sizeof *nvtx->started);
        atomic_store(&nvtx->started_count, count - 1);
    }
    unlock();
    trace_range(&ended, STARTED, true);
    end_marked(ended.marks);
}

/* A trace has it as a range without an end. */
static void mark(void *domain, const kprof_nvtx_event *event)
{
    kprof_nvtx_open point = {.domain = (uint32_t)(uintptr_t)domain};
    copy_message(event, point.name);
    begin_trace(&point);
    trace_range(&point, KPROF_TRACE_MARK, false);
}

/* The forms of an NVTX function that have no domain: with an event, a name, and a wide name. */
#define FORMS(type, returns, name, function)                                                                           \
    static type name##_ex(const kprof_nvtx_event *event)                                                               \
    {                                                                                                                  \
        returns function(NULL, event);                                                                                 \
    }                                                                                                                  \
    static type name##_a(const char *text)                                                                             \
    {                                                                                                                  \
        returns function(NULL, &(kprof_nvtx_event){.size = sizeof(kprof_nvtx_event),                                   \
                                                   .message_type = KPROF_NVTX_ASCII,                                   \
                                                   .message.ascii = text});                                            \
    }                                                                                                                  \
    static type name##_w(const wchar_t *text)                                                                          \
    {                                                                                                                  \
        returns function(NULL, &(kprof_nvtx_event){.size = sizeof(kprof_nvtx_event),                                   \
                                                   .message_type = KPROF_NVTX_UNICODE,                                 \
                                                   .message.unicode = text});                                          \
    }

FORMS(int, return, push, domain_push_ex)
FORMS(uint64_t, return, start, start_range)
FORMS(void, , mark, mark)

static void domain_end(void *domain, uint64_t id)
{
    (void)domain;
    end_range(id);
}

static void *create_domain_a(const char *name)
{
    return add_handle(nvtx->domains, &nvtx->domain_count, KPROF_NVTX_DOMAINS_MAX, name ? name : "");
}

static void *create_domain_w(const wchar_t *name)
{
    char text[KPROF_NVTX_NAME_BYTES];
    return create_domain_a(copy_wide_name(name, text));
}

static void *register_a(void *domain, const char *text)
{
    (void)domain;
    return add_handle(nvtx->strings, &nvtx->string_count, KPROF_NVTX_STRINGS_MAX, text ? text : "");
}

static void *register_w(void *domain, const wchar_t *text)
{
    char copy[KPROF_NVTX_NAME_BYTES];
    return register_a(domain, copy_wide_name(text, copy));
}

static kprof_nvtx_named *find_named(kprof_nvtx_names *names, const void *handle)
{
    const size_t count = atomic_load_explicit(&names->count, memory_order_acquire);
    return KPROF_FIRST(it, names->items, count, it->handle == handle);
}

static void name_part(kprof_filter_part part, const void *handle, const char *name)
{
    kprof_nvtx_names *names = &nvtx->names[part];
    const char *kept = keep_text(name ? name : "");
    if (!kept)
        return;
    KPROF_HOLD(nvtx->mutex);
    kprof_nvtx_named *known = find_named(names, handle);
    const size_t count = atomic_load(&names->count);
    if (!known && count < KPROF_NVTX_NAMED_MAX) {
        names->items[count].handle = handle;
        atomic_store(&names->items[count].name, kept);
        atomic_store_explicit(&names->count, count + 1, memory_order_release);
    } else if (known) {
        atomic_store(&known->name, kept);
        atomic_store(&known->answer, 0);
    }
}

/* The functions that name a part, and one with a wide name. */
#define NAME_FORMS(name, part)                                                                                         \
    static void name##_a(const void *handle, const char *text)                                                         \
    {                                                                                                                  \
        name_part(part, handle, text);                                                                                 \
    }                                                                                                                  \
    static void name##_w(const void *handle, const wchar_t *wide)                                                      \
    {                                                                                                                  \
        char text[KPROF_NVTX_NAME_BYTES];                                                                              \
        name_part(part, handle, copy_wide_name(wide, text));                                                           \
    }

NAME_FORMS(name_context, KPROF_PART_CONTEXT)
NAME_FORMS(name_stream, KPROF_PART_STREAM)

bool kprof_nvtx_match_name(const kprof_filter *filter, kprof_filter_part part, const void *handle)
{
    kprof_nvtx_named *named =
        kprof_filter_needs_part_name(filter, part) ? find_named(&nvtx->names[part], handle) : NULL;
    if (!named)
        return false;
    unsigned char answer = atomic_load_explicit(&named->answer, memory_order_relaxed);
    if (answer == 0) {
        answer = kprof_filter_match_part_name(filter, part, atomic_load(&named->name)) ? 2 : 1;
        atomic_store_explicit(&named->answer, answer, memory_order_relaxed);
    }
    return answer == 2;
}

typedef struct callback {
    int module;
    unsigned place;
    kprof_nvtx_function function;
} callback;

#define CALLBACK(module, place, function)                                                                              \
    {                                                                                                                  \
        KPROF_NVTX_MODULE_##module, KPROF_NVTX_##place, (kprof_nvtx_function)(function)                                \
    }

/* Not categories and names of other resources: no launch is in them, and no trace tells of them. */
static const callback callbacks[] = {
    CALLBACK(CORE, RANGE_START_EX, start_ex),
    CALLBACK(CORE, RANGE_START_A, start_a),
    CALLBACK(CORE, RANGE_START_W, start_w),
    CALLBACK(CORE, RANGE_END, end_range),
    CALLBACK(CORE, RANGE_PUSH_EX, push_ex),
    CALLBACK(CORE, RANGE_PUSH_A, push_a),
    CALLBACK(CORE, RANGE_PUSH_W, push_w),
    CALLBACK(CORE, RANGE_POP, pop),
    CALLBACK(CORE2, DOMAIN_RANGE_START_EX, start_range),
    CALLBACK(CORE2, DOMAIN_RANGE_END, domain_end),
    CALLBACK(CORE2, DOMAIN_RANGE_PUSH_EX, domain_push_ex),
    CALLBACK(CORE2, DOMAIN_RANGE_POP, domain_pop),
    CALLBACK(CORE2, DOMAIN_REGISTER_STRING_A, register_a),
    CALLBACK(CORE2, DOMAIN_REGISTER_STRING_W, register_w),
    CALLBACK(CORE2, DOMAIN_CREATE_A, create_domain_a),
    CALLBACK(CORE2, DOMAIN_CREATE_W, create_domain_w),
    CALLBACK(CUDA, NAME_CU_CONTEXT_A, name_context_a),
    CALLBACK(CUDA, NAME_CU_CONTEXT_W, name_context_w),
    CALLBACK(CUDA, NAME_CU_STREAM_A, name_stream_a),
    CALLBACK(CUDA, NAME_CU_STREAM_W, name_stream_w),
    CALLBACK(CUDART, NAME_CUDA_STREAM_A, name_stream_a),
    CALLBACK(CUDART, NAME_CUDA_STREAM_W, name_stream_w),
};

/* In a trace alone. */
static const callback marks[] = {
    CALLBACK(CORE, MARK_EX, mark_ex),
    CALLBACK(CORE, MARK_A, mark_a),
    CALLBACK(CORE, MARK_W, mark_w),
    CALLBACK(CORE2, DOMAIN_MARK_EX, mark),
};

static void set_functions(const kprof_nvtx_callbacks *module, const callback *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kprof_nvtx_function **functions = NULL;
        unsigned size = 0;
        if (module->get_functions(list[i].module, &functions, &size) && list[i].place < size &&
            functions[list[i].place])
            *functions[list[i].place] = list[i].function;
    }
}

int kprof_nvtx_attach(kprof_nvtx_get_table *get_table)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const kprof_nvtx_callbacks *module = get_table(KPROF_NVTX_CALLBACKS);
    (void)!kprof_engine_prepare(); /* ranges count from the first one on */
    if (!module || module->struct_size < sizeof *module || pthread_once(&once, prepare) != 0)
        return 0;
    set_functions(module, callbacks, COUNT_OF(callbacks));
    if (kprof_engine.process.config.traces)
        set_functions(module, marks, COUNT_OF(marks));
    return 1;
}

/* Remember the ranges of a launch that was not chosen because of them. */
static void note_missed(const kprof_strbuf *text)
{
    const char *kept = keep_or_empty(text);
    bool is_new = *kept != '\0';
    KPROF_HOLD(nvtx->mutex);
    for (size_t i = 0; i < nvtx->missed_count && is_new; i++)
        is_new = nvtx->missed[i] != kept;
    if (is_new && nvtx->missed_count < KPROF_NVTX_MISSED_MAX)
        nvtx->missed[nvtx->missed_count++] = kept;
}

bool kprof_nvtx_backward(uint64_t *sequence)
{
    for (size_t i = 0; pushed && i < pushed->depth; i++) { /* no other thread changes its ranges */
        const kprof_torch_range range = kprof_torch_read(pushed->ranges[i].name);
        *sequence = range.sequence;
        if (range.kind == KPROF_TORCH_BACKWARD && range.has_sequence)
            return true;
    }
    return false;
}

/* Is the launch one of the first that were left out? */
static bool is_noted(void)
{
    return atomic_load(&kprof_engine.process.matched) == 0 &&
           atomic_fetch_add(&nvtx->missed_launches, 1) < MISSED_LAUNCHES;
}

bool kprof_nvtx_match(const kprof_filter *filter)
{
    snapshot s;
    if (!kprof_filter_needs_nvtx(filter))
        return true;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    look(&s);
    bool matches = kprof_filter_match_nvtx(filter, &s.ranges);
    if (!matches && is_noted())
        kprof_nvtx_put_text(&s.ranges, &text);
    look_away(&s);
    note_missed(&text);
    return matches;
}

void kprof_nvtx_note_outside(const kprof_filter *filter)
{
    const kprof_filter_spec *spec = &kprof_engine.process.config.filter;
    snapshot s;
    uint64_t first;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    const bool lacks_step = spec->step && kprof_filter_steps(filter, &first) == 0;
    if ((!lacks_step && !spec->measures_ranges) || !is_noted())
        return;
    look(&s);
    kprof_nvtx_put_text(&s.ranges, &text);
    look_away(&s);
    note_missed(&text);
}

void kprof_nvtx_tell_missed(void)
{
    KPROF_AUTO(kprof_strbuf) line = KPROF_STRBUF_INIT;
    const kprof_filter *filter = kprof_engine.process.filter;
    const bool was_there = filter && kprof_filter_count_ranges(filter).instances > 0; /* but not the instance */
    const kprof_filter_spec *spec = &kprof_engine.process.config.filter;
    const char *asked = spec->step                     ? "was a step of --step"
                        : spec->nvtx_include.count > 0 ? "was asked for"
                                                       : "--nvtx-exclude does not leave out";
    const char *where = spec->profiler_calls == KPROF_FROM_A_START_CALL
                            ? "its launches between cudaProfilerStart and cudaProfilerStop were in"
                            : "its launches were in";
    if (atomic_load(&kprof_engine.process.matched) > 0 || atomic_load(&nvtx->missed_launches) == 0 || was_there ||
        pthread_mutex_trylock(&nvtx->mutex) != 0) /* a signal handler may exit while its thread has it */
        return;
    for (size_t i = 0; i < nvtx->missed_count; i++)
        kprof_strbuf_printf(&line, "%s\"%.*s\"", i ? ", " : "", MISSED_BYTES, nvtx->missed[i]);
    unlock();
    if (line.failed)
        return;
    if (line.length > 0)
        kprof_log(KPROF_LOG_WARNING, "a process had no launch in an NVTX range that %s; %s: %s", asked, where,
                  line.data);
    else
        kprof_log(KPROF_LOG_WARNING, "a process had no launch in an NVTX range that %s: %s no range", asked, where);
}

/* A signal handler may exit while its thread has a lock. Other threads have one for microseconds. */
static bool lock_at_end(pthread_mutex_t *mutex)
{
    const struct timespec limit = kprof_deadline_of_day_after_ns(LONGEST_LOCK_NS);
    return pthread_mutex_timedlock(mutex, &limit) == 0;
}

void kprof_nvtx_trace_open(void)
{
    if (!kprof_engine.process.config.nvtx || !lock_at_end(&nvtx->mutex))
        return;
    for (stack *s = nvtx->stacks; s; s = s->next) {
        if (!lock_at_end(&s->mutex))
            continue;
        for (size_t i = 0; i < s->depth; i++)
            trace_range(&s->ranges[i], PUSHED, false);
        pthread_mutex_unlock(&s->mutex);
    }
    for (size_t i = 0; i < atomic_load(&nvtx->started_count); i++)
        trace_range(&nvtx->started[i], STARTED, false);
    unlock();
}

const char *kprof_nvtx_text(void)
{
    snapshot s;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    look(&s);
    kprof_nvtx_put_text(&s.ranges, &text);
    look_away(&s);
    return keep_or_empty(&text);
}
