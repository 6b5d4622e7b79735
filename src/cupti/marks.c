/* A mark is an event of a ring, one ring for each context. */
#include "cupti/marks.h"

#include "core/hold.h"
#include "core/monotonic.h"
#include "cupti/driver.h"

#include <pthread.h>
#include <stdlib.h>

/* The driver's queue of a stream takes about 1,000 launches. */
#define RING 1024

/* A launch is short if the GPU passes its mark this soon. */
#define SHORT_NS INT64_C(1000000)
/* While the GPU is far behind, a look finds no short launch: look ever more seldom, in the end after each 64 marks. */
#define MOST_UNASKED 64

typedef struct ring {
    struct ring *next;
    const void *context;
    uint64_t passed, set;   /* marks so far */
    void *what;             /* the newest one stands behind this */
    int64_t set_ns;         /* of the newest one */
    unsigned unasked, wait; /* marks since the last look for a short launch, and how many to let pass before the next */
    unsigned oldest, newest;     /* those between may be ahead; equal: none is */
    CUevent events[RING];        /* NULL: not made yet */
    unsigned char is_past[RING]; /* of those between */
} ring;

static struct {
    pthread_mutex_t mutex;
    ring *rings;
} marks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static ring *find_or_make(const void *context)
{
    ring *r = marks.rings;
    while (r && r->context != context)
        r = r->next;
    if (r || !(r = calloc(1, sizeof *r)))
        return r;
    r->context = context;
    r->next = marks.rings;
    marks.rings = r;
    return r;
}

static void note_past(const kprof_driver_api *driver, ring *r, unsigned i)
{
    if (r->is_past[i] || driver->cuEventQuery_(r->events[i]) == CUDA_ERROR_NOT_READY)
        return;
    r->is_past[i] = 1;
    r->passed++;
}

/* Free a place without looking at all of them. */
static void drop_oldest(const kprof_driver_api *driver, ring *r)
{
    if (r->oldest != r->newest)
        note_past(driver, r, r->oldest);
    while (r->oldest != r->newest && r->is_past[r->oldest])
        r->oldest = (r->oldest + 1) % RING;
}

static void look(const kprof_driver_api *driver, ring *r)
{
    for (unsigned i = r->oldest; i != r->newest; i = (i + 1) % RING)
        note_past(driver, r, i);
    drop_oldest(driver, r);
}

/* Return the launch before the newest mark, if the GPU has passed that mark soon; NULL: it has not, or is not asked. */
static void *find_short(const kprof_driver_api *driver, ring *r, int64_t now_ns)
{
    const unsigned newest = (r->newest + RING - 1) % RING;
    if (!r->what || now_ns - r->set_ns > SHORT_NS || ++r->unasked < r->wait)
        return NULL;
    r->unasked = 0;
    if (r->oldest != r->newest)
        note_past(driver, r, newest);
    const bool is_past = r->oldest == r->newest || r->is_past[newest];
    r->wait = is_past ? 0 : r->wait < MOST_UNASKED ? 2 * r->wait + 1 : MOST_UNASKED;
    return is_past ? r->what : NULL;
}

void *kprof_marks_set(void *context, void *stream, void *what)
{
    const kprof_driver_api *driver;
    if (!context || kprof_driver_load(&driver) != KPROF_OK)
        return NULL;
    KPROF_HOLD(marks.mutex);
    const int64_t now_ns = kprof_monotonic_ns();
    ring *r = find_or_make(context);
    void *is_short = r ? find_short(driver, r, now_ns) : NULL;
    bool is_full = r && (r->newest + 1) % RING == r->oldest;
    if (is_full)
        drop_oldest(driver, r);
    is_full = r && (r->newest + 1) % RING == r->oldest;
    CUresult result = r && !is_full ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !r->events[r->newest])
        result = driver->cuEventCreate_(&r->events[r->newest], CU_EVENT_DISABLE_TIMING);
    KPROF_THEN(result, driver->cuEventRecord_(r->events[r->newest], stream));
    if (result == CUDA_SUCCESS) {
        r->is_past[r->newest] = 0;
        r->set++;
        r->newest = (r->newest + 1) % RING;
        r->what = what;
        r->set_ns = now_ns;
    }
    return is_short;
}

kprof_progress kprof_marks_look(const void *context)
{
    const kprof_driver_api *driver;
    kprof_progress progress = {0};
    if (kprof_driver_load(&driver) != KPROF_OK)
        return progress;
    KPROF_HOLD(marks.mutex);
    for (ring *r = marks.rings; r; r = r->next) {
        if (context && r->context != context)
            continue;
        look(driver, r);
        progress.passed += r->passed;
        for (unsigned i = r->oldest; i != r->newest; i = (i + 1) % RING)
            progress.ahead += !r->is_past[i];
        if (context && r->oldest != r->newest)
            progress.first = r->set - (r->newest - r->oldest + RING) % RING + 1;
    }
    return progress;
}

/* Its events go with it. */
void kprof_marks_forget(const void *context)
{
    KPROF_HOLD(marks.mutex);
    for (ring **link = &marks.rings; *link; link = &(*link)->next) {
        ring *going = *link;
        if (going->context != context)
            continue;
        *link = going->next;
        free(going);
        break;
    }
}
