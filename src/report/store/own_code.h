/* Tells the user's own code: of the frames of a call stack, and of the files of a kernel. */
#pragma once

#include "core/strbuf.h"

typedef struct kprof_frame_place {
    const char *function, *file; /* of native code: its module; "": not known */
    bool is_native;
    bool is_kernel; /* its function has the name of a kernel, and launches that */
} kprof_frame_place;

/* Mark the frames that are in no installed package, not in the standard library, and not in CUDA's runtime, which the
 * program may be linked with. Python's frames come first, the innermost at the front, and native ones behind them in
 * the same order. A program may be a package itself: if no frame of Python is marked, mark those of one package, and
 * write its name to `package`. That is the innermost package that is no framework of kernels, or else the innermost
 * one. Return the frame that stands for all. It is the innermost one that is marked, of Python's if there are any;
 * else the innermost one in a package other than NVIDIA's, or else the innermost of all. */
size_t kprof_own_code_find(const kprof_frame_place *frames, size_t count, bool *is_own, kprof_strbuf *package);

/* The folder that a source file is installed with, as the first bytes of its path. */
typedef struct kprof_code_home {
    size_t length;  /* 0: it is in no package; of a header: it is the toolkit's or the system's in any case */
    bool is_header; /* of the CUDA toolkit, of its libraries or of the system */
} kprof_code_home;
kprof_code_home kprof_own_code_home(const char *path);
/* Is a file the user's own, in a kernel whose own file is `kernel`? It is where it is not installed, and where the
 * kernel is of the same package, or of the project that the header turns out to be of. */
bool kprof_own_code_has(const char *path, kprof_code_home home, const char *kernel, kprof_code_home kernel_home);
