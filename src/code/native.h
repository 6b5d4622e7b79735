/* Functions and lines of native code on the host, as the symbols and the debug information of its file tell them. */
#pragma once

#include <stdint.h>

typedef struct kprof_native_module kprof_native_module;

typedef struct kprof_native_place {
    const char *function; /* mangled, valid as long as the module; NULL: not known */
    const char *file;     /* likewise */
    uint32_t line;        /* 0: not known */
} kprof_native_place;

/* Open a program or a library. NULL where it is no regular file of ELF that can be read. */
kprof_native_module *kprof_native_open(const char *path);
void kprof_native_close(kprof_native_module *module);
/* The symbol at an address of the file. */
kprof_native_place kprof_native_find(kprof_native_module *module, uint64_t address);
