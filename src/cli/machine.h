/* Looks at what decides whether a machine can measure kernels, without starting the driver, and judges it. */
#pragma once

#include "cli/listing.h"
#include "core/status.h"
#include "cupti/probe.h"

#include <limits.h>

/* The clocks of the GPUs, as nvidia-smi tells them. */
typedef struct kprof_clocks {
    bool is_known;
    char why_not[128];     /* where they are not known */
    int slowed;            /* the first GPU that is; -1: none */
    const char *slowed_by; /* for people: "heat" */
    int not_persistent;    /* the first GPU that the driver leaves between programs; -1: none */
    long mhz, most_mhz;    /* of the first GPU's SMs, now and at most */
} kprof_clocks;

/* Versions are those of the driver, "580.159.04". */
typedef struct kprof_machine {
    char module_version[32];  /* of the driver's kernel module; "": it is not loaded */
    char library[PATH_MAX];   /* libcuda.so.1, as the loader finds it; "": it does not */
    char library_version[32]; /* as its name tells; "": it does not */
    char library_reason[256]; /* why the loader does not find it */
    int admin_only;           /* RmProfilingAdminOnly; -1: not known */
    bool is_admin;            /* root, or has CAP_SYS_ADMIN */
    bool in_container;
    unsigned mig_instances;
    char holder[64];             /* a process that is known to use counters, "nv-hostengine (process 812)"; "": none */
    const char *injection;       /* as kprof_injection_of_others tells */
    const char *folder;          /* of sessions */
    int folder_error;            /* errno of what keeps runs from making one there; 0: nothing */
    uint64_t free_bytes;         /* there; 0: not known */
    uint64_t memory_bytes;       /* of the host that is available; 0: not known */
    uint64_t device_bytes;       /* of the largest GPU; 0: not known */
    char disassembler[PATH_MAX]; /* nvdisasm; "": there is none */
    /* The caller fills these in, since the driver and other programs tell them. */
    kprof_probe_versions versions;
    const char *cupti_reason;      /* why there is no CUPTI; NULL: there is one */
    kprof_probe_obstacle obstacle; /* of the GPU */
    size_t obstructed;
    kprof_clocks clocks;
} kprof_machine;

typedef enum kprof_check_verdict {
    KPROF_CHECK_FINE,
    KPROF_CHECK_NOTE,
    KPROF_CHECK_WARNING,
    KPROF_CHECK_FAULT
} kprof_check_verdict;

/* One row of what was found. */
typedef struct kprof_check {
    const char *name; /* for programs and people: "permission" */
    kprof_check_verdict verdict;
    kprof_status status; /* of a fault: what a run would end with */
    const char *fix;     /* what to do; "": nothing */
    const char *code;    /* names the finding for programs: "permission-denied"; NULL where all is fine */
} kprof_check;

/* Return the library that CUDA_INJECTION64_PATH names for another profiler, or NULL. Scripts that start ncu under a
 * profiler write "none" there. */
const char *kprof_injection_of_others(void);
/* Look at the machine. The files of the system are looked for below `root`, "" for this one. */
void kprof_machine_look(const char *root, kprof_machine *out);
/* Append a row for each thing that was looked at. Return the status of the first fault, or OK. */
kprof_status kprof_machine_judge(const kprof_machine *machine, kprof_listing *out);
/* Say what to do about a status that a run would end with. The text lives for ever. */
const char *kprof_machine_fix(const kprof_machine *machine, kprof_status status);
/* Append a row: how `check` came out, in the words of `text`. */
void kprof_machine_tell(kprof_listing *out, const kprof_check *check, const char *text);

/* Run nvidia-smi, for three seconds at most. */
void kprof_clocks_look(kprof_clocks *out);
/* Take what it has printed for kprof: a line for each GPU. */
void kprof_clocks_parse(const char *text, kprof_clocks *out);
