/* Reads the cubins that the process loads for two things that replays must know: writable module variables, which are
 * not among the allocations, and kernels that call the driver's device runtime. They tell of barriers, too. */
#pragma once

#include "core/strbuf.h"

#define KPROF_PRINTS "vprintf"

/* Note a cubin as CUPTI shows it when a module is loaded. Thread-safe. */
void kprof_modules_add(const void *cubin, size_t size);

/* Return the function of the driver that a kernel, or one that it may launch on the device, calls, and that a replay
 * would repeat or not undo: "vprintf", "malloc", "cudaGraphLaunch". It is "?" when no loaded cubin has the kernel, and
 * NULL when there is no such function; that of an assertion is not one. KPROF_PRINTS is told only if there is no other.
 * The text lives as long as the process. Thread-safe. */
const char *kprof_modules_side_effect(const char *kernel);

/* Does the code of a kernel launch kernels, or that of another kernel of this name? Thread-safe. */
typedef enum kprof_device_launches {
    KPROF_DEVICE_LAUNCHES_UNKNOWN, /* no loaded cubin has the kernel */
    KPROF_DEVICE_LAUNCHES_NONE,
    KPROF_DEVICE_LAUNCHES_SOME,
} kprof_device_launches;
kprof_device_launches kprof_modules_device_launches(const char *kernel);

/* Return how many barriers a block of the kernel takes, plus 1. 0 where no loaded cubin tells, or several disagree
 * about kernels of this name. Thread-safe. */
unsigned kprof_modules_barriers(const char *kernel);

/* Names of the writable variables in a cubin that has the kernel, the one of this index among those that do, from 0;
 * NULL when there are no more. The list lives as long as the process. Thread-safe. */
const kprof_strlist *kprof_modules_variables(const char *kernel, size_t index);
/* The variables of this list, which _variables has returned, are noted where they are. Thread-safe. */
void kprof_modules_note_variables(const kprof_strlist *variables);
/* Return how many of the cubins that have the kernel, or any kernel for NULL, have variables that nobody has noted
 * since they were loaded. A kernel that kprof did not see may have left their addresses anywhere. Thread-safe. */
size_t kprof_modules_count_unnoted(const char *kernel);
/* Name a kernel and a variable of each with --verbose. */
void kprof_modules_tell_unnoted(void);
