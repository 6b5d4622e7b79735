/* How a thread of the application computes is its own affair: it may have traps set, round in another way, or look at
 * the flags of exceptions later. kprof computes in such a thread as C does by default, and leaves no flag behind. */
#pragma once

#include <fenv.h>

#ifdef __x86_64__
/* As feholdexcept and fesetenv without the x87, of which kprof has no numbers and which takes ten times as long. */
typedef unsigned kprof_floats;

static inline void kprof_floats_take(kprof_floats *theirs)
{
    enum { DEFAULT = 0x1f80 };
    *theirs = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(DEFAULT);
}

static inline void kprof_floats_give(const kprof_floats *theirs)
{
    __builtin_ia32_ldmxcsr(*theirs);
}
#else
typedef fenv_t kprof_floats;

static inline void kprof_floats_take(kprof_floats *theirs)
{
    fegetenv(theirs);
    fesetenv(FE_DFL_ENV);
}

static inline void kprof_floats_give(const kprof_floats *theirs)
{
    fesetenv(theirs);
}
#endif

/* At the start of a function that the application enters kprof by: until its end the thread computes as C does. */
#define KPROF_OWN_FLOATS()                                                                                             \
    kprof_floats theirs __attribute__((cleanup(kprof_floats_give)));                                                   \
    kprof_floats_take(&theirs)
