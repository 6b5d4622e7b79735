/* Follows the NVTX ranges of the application, where --nvtx asks for it. NVTX calls kprof itself, not CUPTI, so that it
 * does not matter which copy of CUPTI a framework brings. */
#pragma once

#include "core/filter.h"
#include "core/names.h"
#include "inject/nvtx_abi.h"

#include <pthread.h>
#include <stdatomic.h>

#define KPROF_NVTX_NAME_BYTES  256 /* of a range, with the NUL; the rest is cut off */
#define KPROF_NVTX_DOMAINS_MAX 1024
#define KPROF_NVTX_STRINGS_MAX 65536 /* registered */
#define KPROF_NVTX_MISSED_MAX  20
#define KPROF_NVTX_NAMED_MAX   1024               /* contexts that have a name, and streams */
#define KPROF_NVTX_TEXT_BYTES  ((size_t)64 << 20) /* of all different texts of launches */

typedef struct kprof_nvtx_open {
    uint64_t id;              /* of a range that is started; of one that is pushed, its place in the order of all */
    uint64_t marks;           /* of kprof_filter_begin_range */
    int64_t start_ns, thread; /* of a trace; 0: there is none */
    uint32_t domain;
    char name[KPROF_NVTX_NAME_BYTES];
} kprof_nvtx_open;

/* A context or a stream that has a name. Its place stays, so that launches look for it without a lock. */
typedef struct kprof_nvtx_named {
    const void *handle;
    const char *_Atomic name;     /* lives as long as the process, since a launch may be reading it */
    _Atomic unsigned char answer; /* of the filter: 0 not known yet, 1 no, 2 yes */
} kprof_nvtx_named;

typedef struct kprof_nvtx_names {
    kprof_nvtx_named items[KPROF_NVTX_NAMED_MAX]; /* [count] */
    atomic_size_t count;
} kprof_nvtx_names;

typedef struct kprof_nvtx_state {
    pthread_mutex_t mutex;
    /* Handles of domains and strings are their places here, from 1 on. What is there never goes away. */
    char *_Atomic domains[KPROF_NVTX_DOMAINS_MAX];
    char *_Atomic *strings; /* [KPROF_NVTX_STRINGS_MAX] */
    size_t domain_count, string_count;
    struct kprof_nvtx_stack *stacks; /* of threads */
    _Atomic uint64_t push_count;
    kprof_nvtx_open *started; /* [KPROF_NVTX_STARTED_MAX] */
    atomic_size_t started_count;
    uint64_t last_id;
    kprof_names texts; /* of launches, each once */
    size_t text_bytes;
    bool texts_full;
    const char *missed[KPROF_NVTX_MISSED_MAX]; /* [missed_count]: of launches that the ranges kept from being chosen */
    size_t missed_count;
    atomic_size_t missed_launches;
    kprof_nvtx_names names[KPROF_PARTS];
} kprof_nvtx_state;

extern kprof_nvtx_state kprof_the_nvtx;

/* Have a module's NVTX call kprof from now on. 1, or 0 if it cannot. Any thread, also before kprof_life_begin. */
int kprof_nvtx_attach(kprof_nvtx_get_table *get_table);

/* Are the ranges that the calling thread is in those of launches that the filter takes? It is in those that it has
 * pushed itself, or with --nvtx-push-pop-scope process in those of all threads, and in what any thread has started. */
bool kprof_nvtx_match(const kprof_filter *filter);
/* Is the calling thread in a range that it has pushed for a node of PyTorch's backward pass, with a sequence number? */
bool kprof_nvtx_backward(uint64_t *sequence);
/* Has NVTX given the context or stream a name that the filter asks for? False where the filter asks for none. */
bool kprof_nvtx_match_name(const kprof_filter *filter, kprof_filter_part part, const void *handle);
/* If no launch of the process was chosen, name the ranges of the launches that kprof_nvtx_match refused. */
void kprof_nvtx_tell_missed(void);
/* A launch is left out because no range so far was a step, or one to be measured. Note the ranges that it is in: the
 * user may have misspelt the wanted one. */
void kprof_nvtx_note_outside(const kprof_filter *filter);
/* Tell the trace of the ranges that are open as the process ends. */
void kprof_nvtx_trace_open(void);
/* The ranges that the calling thread is in, as kprof_nvtx_put_text writes them. Lives as long as the process. */
const char *kprof_nvtx_text(void);
