/* Counters of single instructions, which CUPTI patches into kernels, and what both these and samples are given as. The
 * caller enables them in an idle context, launches, waits, and reads what each launch has counted by itself. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One instruction that has a value other than zero. */
typedef struct kprof_instruction {
    uint64_t crc;         /* CUPTI's checksum of its cubin */
    const char *function; /* mangled */
    uint64_t offset;      /* in bytes, from the start of the function */
    const double *values; /* [name_count] */
} kprof_instruction;

/* The values of one launch, valid until the next reading. */
typedef struct kprof_instruction_data {
    const char *const *names; /* [name_count]: they live as long as what was read */
    size_t name_count;
    const kprof_instruction *items; /* [count], in no order; an instruction may be there more than once */
    size_t count;
    uint64_t dropped; /* samples that were lost */
} kprof_instruction_data;

/* Keeps rows of values, one for each instruction, and reuses the memory. Starts as zeros. */
typedef struct kprof_instruction_rows {
    kprof_instruction *items; /* [capacity], owned */
    double *values;           /* [capacity * names], owned */
    size_t count, capacity, names;
} kprof_instruction_rows;

/* Make space for this many instructions, and forget those that are there. False when memory runs out. */
bool kprof_instruction_rows_begin(kprof_instruction_rows *rows, size_t count, size_t names);
/* The values of the next row, all zeros. */
double *kprof_instruction_rows_next(kprof_instruction_rows *rows);
/* Keep the row whose values were given last, unless all of them are zeros. */
void kprof_instruction_rows_keep(kprof_instruction_rows *rows, uint64_t crc, const char *function, uint64_t offset);
void kprof_instruction_rows_free(kprof_instruction_rows *rows); /* members */

typedef struct kprof_instructions kprof_instructions;

/* The context and device that counters are collected in. */
typedef struct kprof_instructions_place {
    void *context;
    uint32_t device;            /* CUDA's number of it */
    const char *chip;           /* "GH100" */
    const kprof_strlist *names; /* of the counters; borrowed while the object lives */
} kprof_instructions_place;

/* Get a context ready; it must be current. CUPTI takes the configuration of a device once in a process, and kprof gives
 * it in the device's primary context. Names that the chip does not have are left out with a warning. UNSUPPORTED when
 * none is left, in another context, and after the device was reset. One object for a context at a time. */
kprof_status kprof_instructions_open(const kprof_instructions_place *place, kprof_instructions **out) KPROF_MUST_CHECK;
/* Patch kernels from now on, each at its first launch, which takes 4 to 5 ms then (H200). The context must be idle. */
kprof_status kprof_instructions_enable(kprof_instructions *instructions) KPROF_MUST_CHECK;
/* Read what the launches since the last reading have counted, and begin with zeros again. All of them have ended. */
kprof_status kprof_instructions_read(kprof_instructions *instructions, kprof_instruction_data *out) KPROF_MUST_CHECK;
/* Kernels are the application's own again. The context must be idle. */
kprof_status kprof_instructions_disable(kprof_instructions *instructions) KPROF_MUST_CHECK;
/* Free it, before the context ends: CUPTI forgets the context, and the device's instructions are not counted again. */
void kprof_instructions_close(kprof_instructions *instructions);
