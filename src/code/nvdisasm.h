/* Finds and runs nvdisasm, NVIDIA's disassembler, which comes with toolkits and with Python's packages of them. */
#pragma once

#include "core/child.h"
#include "core/status.h"
#include "core/strbuf.h"

/* Append the paths of the executables named nvdisasm that the machine has, best first. */
void kprof_nvdisasm_find(kprof_strlist *out);

/* Run a program, whose argument list ends with NULL, without input, and append what it prints to `out`. Where it cannot
 * be started, fails, prints more than `most_bytes` or runs for longer than `limit_ns`, `reason` (clean, never empty)
 * says so. Returns KPROF_OK where it succeeded, KPROF_NO_MEMORY, KPROF_INTERNAL where it failed, or KPROF_UNSUPPORTED
 * where it did not run to its end, as another time is no better; logs nothing. */
kprof_status kprof_nvdisasm_run(char *const *arguments, const kprof_child_limits *limits, kprof_strbuf *out,
                                kprof_strbuf *reason) KPROF_MUST_CHECK;
