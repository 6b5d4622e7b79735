/* The rows that ncu prints of a roofline: what its roof and its point are made of. */
#pragma once

#include "report/emit/emit.h"

typedef struct kprof_ncu_row {
    const char *item;  /* the roof or the point */
    const char *label; /* of the value, as the options title metrics */
    const char *unit;
    double value; /* NaN: not measured */
} kprof_ncu_row;

/* Gets each row, whose texts live as long as the call. */
typedef struct kprof_ncu_writer {
    const kprof_emitter *emitter;
    const kprof_model_launch *launch;
    void (*put)(void *user, const kprof_ncu_row *row);
    void *user;
} kprof_ncu_writer;

void kprof_ncu_rooflines(const kprof_ncu_writer *to, const kprof_emit_roofline *roofline);
