/* The largest report that kprof reads. Anyone can make a file, so a few bytes of it must not cost gigabytes of memory
 * or minutes of work. Real reports stay far below these limits. */
#pragma once

#define KPROF_CHIPS_MAX     64 /* as many as a process can have devices */
#define KPROF_METRICS_MAX   65536
#define KPROF_WITNESSES_MAX 1024    /* each launch is asked about all of them */
#define KPROF_PASSES_MAX    65535   /* of a chip */
#define KPROF_VALUES_MAX    131072  /* of the sections of all chips: items, cells and points of rooflines */
#define KPROF_FORMULA_BYTES 1048576 /* of the expressions in these; a byte takes a hundred in memory */
#define KPROF_COUNTED_MAX   1e100   /* what is counted of an instruction: sums of many stay numbers */
#define KPROF_UNIT_BYTES    32      /* of a metric; what is longer is cut */
#define KPROF_NAME_BYTES    256 /* of a device, a chip, a process or a host, likewise; a file's name has at most 255 */
#define KPROF_CELL_BYTES    16384   /* of a text that people read; what is longer is cut */
#define KPROF_SETS_BYTES    262144  /* of the JSON that names the sets */
#define KPROF_SUMMARY_MAX   4194304 /* values of the summary: kernels times metrics, or times sources */

/* Steps of SQLite's virtual machine for reading the list of tables. A table takes about ten. */
#define KPROF_SCHEMA_STEPS 1000000

/* SQLite's own memory, which a schema of megabytes would fill. */
#define KPROF_SQLITE_HEAP_BYTES ((int64_t)128 << 20)

/* Values that a page may ask for: launches times the metrics and values of sections. Rows of launches without values
 * are short, so a small file can stand for billions. */
#define KPROF_WORK_BASE          ((uint64_t)16 << 20)
#define KPROF_WORK_PER_FILE_BYTE 1
#define KPROF_WORK_OF_WITNESS    64 /* this many passes compared, or witnesses shown, cost a value */

/* The most bytes that a page may write, over all its reports. Each value of a launch may come with the kernel's names,
 * which can have megabytes. */
#define KPROF_OUTPUT_BASE_BYTES    ((uint64_t)512 << 20)
#define KPROF_OUTPUT_PER_FILE_BYTE 128

/* Work of a comparison, in values. */
#define KPROF_WORK_OF_GROUP       128 /* a kernel and shape of a report */
#define KPROF_WORK_OF_NAME_BYTE   2   /* of its kernel's names */
#define KPROF_WORK_OF_CHANGE      16  /* a metric of a pair of these */
#define KPROF_NAME_BYTES_OF_VALUE 8   /* this many bytes of names in a change cost as much as a value */
#define KPROF_WORK_OF_LOOKUP      8   /* finding one value of a launch */
#define KPROF_WORK_OF_SORTING     4   /* a value among those of a metric */

/* Work of matching a pattern with the names of a report's kernels, as core/regex.h counts it. */
#define KPROF_MATCHING_MAX ((uint64_t)1 << 31)
