/* The Python frames of the calling thread, read from CPython's own structures. No function of CPython takes a lock or a
 * reference here, the GIL is not needed, and memory that is not what it should be gives fewer frames, never a fault. */
#pragma once

#include "callstack/memory.h"

/* Longer names and paths are cut. */
#define KPROF_PYTHON_NAME_BYTES 256
#define KPROF_PYTHON_FILE_BYTES 1024

/* The place of a frame. */
typedef struct kprof_python_site {
    uintptr_t address; /* of what should be a code object */
    int32_t offset;    /* of the instruction, in bytes */
} kprof_python_site;

typedef struct kprof_python_text {
    char function[KPROF_PYTHON_NAME_BYTES], file[KPROF_PYTHON_FILE_BYTES];
    uint32_t line; /* 0: not known */
} kprof_python_text;

typedef struct kprof_python_frames {
    kprof_python_site *sites; /* [most], of the caller; the innermost first */
    size_t most, count;
    bool is_cut;        /* there are more frames outside of these */
    const char *reason; /* why they cannot be found; "": they can */
} kprof_python_frames;

/* Find the frames of the calling thread. */
void kprof_python_walk(kprof_memory *memory, kprof_python_frames *frames);
/* Find those of the thread with this state, which is CPython's PyThreadState; without a reason. */
void kprof_python_walk_state(kprof_memory *memory, uintptr_t state, kprof_python_frames *frames);
/* Read the names and the line of a site of this walk, "" and 0 where they cannot be read. False: there is no code
 * object. One thread at a time. */
bool kprof_python_describe(kprof_memory *memory, const kprof_python_site *site, kprof_python_text *out);
/* Another number than before: what was read of a code object at this address no longer holds. */
uint64_t kprof_python_freed(uintptr_t code);
