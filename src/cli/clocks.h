/* The clocks of the GPUs, as nvidia-smi tells them. */
#pragma once

#include <stdbool.h>

typedef struct kprof_clocks {
    bool is_known;
    char why_not[128];     /* where they are not known */
    int slowed;            /* the first GPU that is; -1: none */
    const char *slowed_by; /* for people: "heat" */
    int not_persistent;    /* the first GPU that the driver leaves between programs; -1: none */
    long mhz, most_mhz;    /* of the first GPU's SMs, now and at most */
} kprof_clocks;

/* Run nvidia-smi, for three seconds at most. */
void kprof_clocks_look(kprof_clocks *out);
/* Take what it has printed for kprof: a line for each GPU. */
void kprof_clocks_parse(const char *text, kprof_clocks *out);
