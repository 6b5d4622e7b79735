/* Exit codes of the command kprof, for programs that start it. kprof's own functions return the statuses by name. */
#ifndef KPROF_EXIT_CODES_H
#define KPROF_EXIT_CODES_H

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
    X(NOT_COMPARABLE, 112, "the reports cannot be compared")                                                           \
    X(REGRESSION, 113, "a condition of --fail-on is met")                                                              \
    X(INCONCLUSIVE, 114, "nothing tells whether a condition of --fail-on is met")                                      \
    X(APPLICATION, 119, "the application failed with a status that kprof uses itself")

#endif
