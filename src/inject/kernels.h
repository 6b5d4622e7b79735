/* The kernels of this process: what the filter says of each, and how often each was launched. */
#ifndef KPROF_INJECT_KERNELS_H
#define KPROF_INJECT_KERNELS_H

#include "core/config.h"
#include "core/filter.h"
#include "cupti/target.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct kprof_kernel {
    kprof_kernel_record record;  /* number, name, registers and memory */
    bool matches;                /* the filter's kernel name */
    atomic_bool is_top;          /* beside a census: it is among those with most time so far */
    bool is_range;               /* it stands for a range of the application, which has its name */
    _Atomic uint32_t repeated;   /* such ranges that were repeated as a whole */
    _Atomic uint32_t unrepeated; /* such ranges that could not be */
    _Atomic uint64_t launches;
    _Atomic uint64_t placed;       /* launches where --kernel-id wants them */
    _Atomic uint32_t watched_ends; /* launches that were watched and ended by themselves */
    atomic_bool to_watch;          /* the launch that is entered is to be watched */
    _Atomic uint32_t short_ends;   /* launches that ended within a millisecond, as marks have shown */
    _Atomic uint32_t timeouts;     /* launches that did not end by themselves while kprof waited for them */
    atomic_bool ends_late;         /* there were enough timeouts: the kernel may wait for the application */
    atomic_bool takes_long;        /* it ends by itself, but a launch did not while kprof held its call */
    _Atomic uint32_t lost_runs;    /* own runs without values: other work came before they had ended */
    atomic_bool is_quiet;          /* launches that did not end by themselves changed no memory */
    atomic_bool changes;           /* one did, or kprof cannot tell */
    atomic_bool is_followed;       /* work came behind such a launch before that had ended */
    atomic_bool writes_host;       /* memory of the host was written while a batch stood behind a launch */
    atomic_bool ends_alone;        /* a launch ended before anything in another stream came after it */
    _Atomic uint32_t by_itself;    /* launches that had batches of their own, because of what their replays need */
    atomic_bool prints_unseen;     /* kprof cannot see what it prints, so it cannot drop that either */
    atomic_bool proved;            /* kprof saw that launches did not reach memory of the host */
    atomic_bool compared;          /* a copy to the host behind a launch was the same in all replays */
    _Atomic uint32_t reaches_host; /* launches that reached memory of the host */
} kprof_kernel;

typedef struct kprof_kernel_slot {
    void *function, *context; /* a library's kernel has one handle in all contexts */
    kprof_kernel *kernel;
} kprof_kernel_slot;

typedef struct kprof_kernel_table {
    pthread_mutex_t mutex;    /* one that checks for errors */
    kprof_kernel_slot *slots; /* [slot_count], a power of two; open addressing */
    size_t slot_count, slots_used;
    atomic_uint generation; /* of handles */
    unsigned slots_generation;
    kprof_kernel **kernels; /* [kernel_count] */
    size_t kernel_count;
} kprof_kernel_table;

extern kprof_kernel_table kprof_the_kernels;

/* A launch, or a transfer. A transfer is only replayed, so it sets nothing but `call` and `awaited`. */
typedef struct kprof_batch_launch {
    const kprof_call *call;
    kprof_kernel *kernel; /* NULL: a transfer */
    const kprof_chip_metrics *metrics;
    bool chosen;                /* else it is only replayed, since it changes memory */
    bool begins_range;          /* it is the first of a range, which goes on until kprof_batch_end_range */
    const char *unrepeated;     /* why such a range is not repeated; "": nobody needs to know */
    kprof_kernel *repeats;      /* the launch is the first of this range, which is repeated as a whole; or NULL */
    bool awaited;               /* of a transfer: the work before it in its stream has ended */
    kprof_launch_record record; /* of a chosen launch, or of the range: complete but for what measuring adds */
} kprof_batch_launch;

/* Called once for each new kernel, before another thread can find it. The function must not look for kernels itself. */
typedef void kprof_kernel_announcer(const kprof_kernel *kernel);

/* The kernel of a launch; new ones are added and announced. NULL when out of memory. Thread-safe; kernels live as long
 * as the process. Two kernels of one name, as made at run time, are told apart by registers and memory. */
kprof_kernel *kprof_kernels_find(const kprof_call *call, const kprof_filter *filter, kprof_kernel_announcer *announce);

/* The same for a kernel that is known by its name alone, or that stands for a range of the application. NULL, too, in a
 * signal handler that has interrupted one of these functions. */
kprof_kernel *kprof_kernels_find_named(const char *name, bool is_range, const kprof_filter *filter,
                                       kprof_kernel_announcer *announce);

/* Forget which handle stands for which kernel: modules are being unloaded, or a context ends. */
void kprof_kernels_forget_handles(void);

/* Return how long to wait for a launch of the kernel to end by itself: longer after each timeout, as a kernel that
 * waits for the application may give up. 0: do not wait any more. */
int64_t kprof_kernel_patience_ns(const kprof_kernel *kernel);
/* Such a wait timed out. */
void kprof_kernel_note_timeout(kprof_kernel *kernel);
/* The launch of such a wait has ended, and nothing has come that it could have waited for: so it only took long. */
void kprof_kernel_note_end(kprof_kernel *kernel);

/* Return what the filter counts launches by: device, kernel and shape. */
kprof_filter_launch kprof_kernel_place(const kprof_launch_record *record);

/* Call `visit` for every kernel. */
void kprof_kernels_visit(void (*visit)(kprof_kernel *kernel));

#endif
