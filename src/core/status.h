/* Status codes of every fallible kprof function, their texts and the exit codes that the command line gives for them.
 * One list makes the enum, the names, the messages and the table in kprof(1). */
#ifndef KPROF_CORE_STATUS_H
#define KPROF_CORE_STATUS_H

/* X(NAME, exit code, message). Codes 1-99 and 128+signal are left to the application. */
#define KPROF_STATUS_MAP(X)                                                                                            \
    X(OK, 0, "success")                                                                                                \
    X(INTERNAL, 100, "an operation of the GPU driver, CUPTI or the system failed")                                     \
    X(NO_MEMORY, 100, "out of memory")                                                                                 \
    X(USAGE, 101, "the command line is not valid")                                                                     \
    X(UNKNOWN_NAME, 102, "unknown metric, set, section or chip")                                                       \
    X(BAD_METRICSET, 102, "a set or section file is not valid")                                                        \
    X(NO_GPU, 103, "no GPU or no driver")                                                                              \
    X(NO_PERMISSION, 104, "no permission to read GPU counters")                                                        \
    X(COUNTERS_BUSY, 105, "the GPU counters are in use by another tool")                                               \
    X(NO_MATCH, 106, "no kernel launch matched")                                                                       \
    X(BAD_REPORT, 107, "the report cannot be read")                                                                    \
    X(BAD_SPOOL, 107, "a spool file cannot be read")                                                                   \
    X(OUTPUT, 108, "the output cannot be written (disk full, closed pipe or permission)")                              \
    X(NO_APPLICATION, 109, "the application cannot be started")                                                        \
    X(NOT_COLLECTED, 110, "kernel launches matched but none could be measured")                                        \
    X(UNSUPPORTED, 111, "this device, chip or build does not support the operation")                                   \
    X(APPLICATION, 119, "the application failed with a status that kprof uses itself")

typedef enum kprof_status {
#define KPROF_STATUS_ENUM(name, exit_code, message) KPROF_##name,
    KPROF_STATUS_MAP(KPROF_STATUS_ENUM)
#undef KPROF_STATUS_ENUM
        KPROF_STATUS_COUNT
} kprof_status;

#define KPROF_MUST_CHECK __attribute__((warn_unused_result))

/* Name ("NO_MATCH"), one-line message and exit code of a status; never NULL, "?" for a value outside the enum. */
const char *kprof_status_name(kprof_status status);
const char *kprof_status_message(kprof_status status);
int kprof_status_exit_code(kprof_status status);

#endif
