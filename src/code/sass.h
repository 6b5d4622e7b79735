/* Reads the text of an instruction: the memory that it accesses, the registers that it names, and which instruction
 * comes next. Texts are nvdisasm's, of compute capability 7.5 and higher. */
#pragma once

#include "code/code.h"

/* A set of registers: R0 to R255, UR0 to UR127, P0 to P7 and UP0 to UP7. */
typedef struct kprof_sass_registers {
    uint64_t words[7];
} kprof_sass_registers;

typedef enum kprof_sass_flow {
    KPROF_SASS_NEXT,     /* the next instruction follows */
    KPROF_SASS_JUMP,     /* to its label, or to the next one where it has a condition */
    KPROF_SASS_INDIRECT, /* to one of several */
    KPROF_SASS_END,      /* of the thread or of the function */
    KPROF_SASS_CALL,     /* of another function, after which the next instruction follows */
    KPROF_SASS_MEETING,  /* BSSY: threads that part now meet at its label, behind a BSYNC */
} kprof_sass_flow;

/* The part that an instruction has in waiting, beside registers. */
typedef enum kprof_sass_role {
    KPROF_SASS_PLAIN,
    KPROF_SASS_COPY,         /* LDGSTS: copies to shared memory while the warp goes on */
    KPROF_SASS_COPY_GROUP,   /* LDGDEPBAR: a scoreboard stands for the copies since the last one */
    KPROF_SASS_BULK_STORE,   /* UTMASTG, UBLKCP.G.S: copies from shared memory by a unit of their own */
    KPROF_SASS_BULK_GROUP,   /* UTMACMDFLUSH: a scoreboard stands for these since the last one */
    KPROF_SASS_BULK_LOAD,    /* UTMALDG, UBLKCP.S.G: copies to shared memory, and tells a barrier there */
    KPROF_SASS_COPY_ARRIVE,  /* ARRIVES.LDGSTSBAR: a barrier in shared memory is told when copies have ended */
    KPROF_SASS_ARRIVE,       /* SYNCS.ARRIVE.TRANS64.A1T0: a thread tells such a barrier */
    KPROF_SASS_TEST,         /* SYNCS.PHASECHK: asks such a barrier, and waits for a while */
    KPROF_SASS_AWAIT,        /* DEPBAR: waits for the scoreboards in `awaited` */
    KPROF_SASS_MATRIX,       /* HGMMA and the like: multiplies while the warps go on */
    KPROF_SASS_MATRIX_GROUP, /* the same with "gsb0", which stands for it and those since the last one */
    KPROF_SASS_AWAIT_MATRIX  /* WARPGROUP.DEPBAR: waits for these */
} kprof_sass_role;

typedef struct kprof_sass {
    kprof_sass_registers gives; /* what it writes */
    kprof_sass_registers names; /* what it reads or writes; may have some more */
    kprof_sass_flow flow;
    kprof_sass_role role;
    uint8_t pending;    /* how many of what it awaits may go on */
    bool has_condition; /* it may not be executed, or not jump */
    uint8_t awaited;    /* scoreboards, a bit each */
    uint8_t counted;    /* those of them that `pending` is about, likewise */
    const char *label;  /* in the text: the name, of label_length; NULL: none */
    size_t label_length;
} kprof_sass;

/* Read a text such as "@!P0 LDG.E R4, desc[UR4][R2.64] ;". Anything may stand in it. */
void kprof_sass_read(const char *text, kprof_sass *out);
/* ncu's words for the memory that it accesses. */
kprof_code_access kprof_sass_access(const char *text);
bool kprof_sass_overlap(const kprof_sass_registers *a, const kprof_sass_registers *b);
