/* Which frames of a call stack are the user's own code. */
#pragma once

#include "core/strbuf.h"

typedef struct kprof_frame_place {
    const char *function, *file; /* of native code: its module; "": not known */
    bool is_native;
    bool is_kernel; /* its function has the name of a kernel, and launches that */
} kprof_frame_place;

/* Which of these frames are in neither an installed package nor the standard library, nor code of CUDA's runtime that
 * the program was linked with; Python's frames are first, the
 * innermost at the front, and native ones likewise behind them. If no frame of Python is, as of a program that is a
 * package itself, those of one package are taken for the user's own, and `package` gets its name: of the innermost one
 * that is no framework of kernels, or if there is none, the innermost one. Returns which frame stands for all: the
 * innermost one of the user's own, of Python's if there are some; else the innermost one that is in a package, but
 * NVIDIA's, or of all. */
size_t kprof_own_code_find(const kprof_frame_place *frames, size_t count, bool *is_own, kprof_strbuf *package);
