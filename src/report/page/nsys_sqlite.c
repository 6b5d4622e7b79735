/* A trace as an SQLite file with tables and columns of Nsight Systems, so that what reads its exports reads this one. A
 * table is a row here: SQL makes its rows, and columns that kprof knows nothing of are NULL. Times count from the
 * beginning of the trace. */
#include "core/log.h"
#include "report/emit/emit.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/store/store.h"

#include <string.h>

/* Texts have numbers, and processes the numbers that nsys gives them: 24 bits of the host, 24 of the process and, of a
 * thread, 24 of that. */
static const char helpers[] =
    "CREATE TEMP TABLE nsys_string(id INTEGER PRIMARY KEY, value TEXT UNIQUE);"
    "INSERT OR IGNORE INTO temp.nsys_string(value) SELECT text FROM trace_name ORDER BY id;"
    "INSERT OR IGNORE INTO temp.nsys_string(value) SELECT demangled FROM trace_name UNION ALL SELECT function FROM "
    "trace_name;"
    "CREATE TEMP TABLE nsys_name(id INTEGER PRIMARY KEY, text INTEGER, demangled INTEGER, function INTEGER);"
    "INSERT INTO temp.nsys_name SELECT n.id, t.id, d.id, f.id FROM trace_name n JOIN temp.nsys_string t ON "
    "t.value=n.text JOIN temp.nsys_string d ON d.value=n.demangled JOIN temp.nsys_string f ON f.value=n.function;"
    "CREATE TEMP TABLE nsys_process(id INTEGER PRIMARY KEY, global INTEGER, pid INTEGER, name TEXT);"
    "INSERT INTO temp.nsys_process SELECT id, (dense_rank() OVER (ORDER BY host)<<48)|((pid&16777215)<<24), pid, name "
    "FROM process";

#define OF_PROCESS " JOIN temp.nsys_process p ON p.id=process_id"
#define KNOWN      " WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL"
#define ON_GPU     "start_ns-@start, end_ns-@start, device, context, NULL, stream, correlation, global"
#define ON_GPU_COLUMNS                                                                                                 \
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, greenContextId INTEGER, "      \
    "streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
#define ENUMERATION "id INTEGER NOT NULL, name TEXT, label TEXT"
#define COPY_KINDS                                                                                                     \
    "VALUES(0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), (2, "           \
    "'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'), (4, "                  \
    "'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'), (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'), (6, "                  \
    "'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'), (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'), (8, "               \
    "'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (10, "                \
    "'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer')"
#define MEMORY_KINDS                                                                                                   \
    "VALUES(0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, " \
    "'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'), (4, "                 \
    "'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'), (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'), "   \
    "(6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'), (65535, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', "     \
    "'Unknown')"
/* What the trace names, by the labels above. */
#define KINDS                                                                                                          \
    "WITH copy_kind(kind, name, label) AS (" COPY_KINDS "), memory_kind(kind, name, label) AS (" MEMORY_KINDS          \
    "), copy AS MATERIALIZED (SELECT n.id, kind FROM trace_name n JOIN copy_kind ON label=text), memory AS "           \
    "MATERIALIZED (SELECT n.id, kind FROM trace_name n JOIN memory_kind ON label=text) "
/* Calls in which the host waits; which context or stream for is not known. */
#define SYNC_KINDS                                                                                                     \
    "VALUES(1, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE', 'Event sync'), (2, "                           \
    "'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT', 'Stream wait event'), (3, "                              \
    "'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE', 'Stream sync'), (4, "                                   \
    "'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE', 'Context sync')"
#define SYNC_KIND                                                                                                      \
    "CASE WHEN text GLOB 'cu*EventSynchronize*' THEN 1 WHEN text GLOB 'cu*StreamWaitEvent*' THEN 2 WHEN text GLOB "    \
    "'cu*StreamSynchronize*' THEN 3 WHEN text GLOB 'cudaDeviceSynchronize*' OR text GLOB 'cu*CtxSynchronize*' OR "     \
    "text GLOB 'cudaThreadSynchronize*' THEN 4 END"

/* As nvidia-smi writes it. */
#define UUID                                                                                                           \
    "'GPU-' || substr(uuid, 1, 8) || '-' || substr(uuid, 9, 4) || '-' || substr(uuid, 13, 4) || '-' || substr(uuid, "  \
    "17, 4) || '-' || substr(uuid, 21)"

typedef struct nsys_table {
    const char *name, *columns, *rows;
} nsys_table;

static const nsys_table tables[] = {
    {"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", "SELECT id, value FROM temp.nsys_string"},
    {"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT", "SELECT global, pid, name FROM temp.nsys_process"},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     ON_GPU_COLUMNS ", demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType "
                    "INTEGER, cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ "
                    "INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, "
                    "dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId "
                    "INTEGER, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, "
                    "graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER",
     "SELECT " ON_GPU ", n.demangled, n.function, n.text, NULL, NULL, registers_per_thread, grid_x, grid_y, grid_z, "
     "block_x, block_y, block_z, static_smem_bytes, dynamic_smem_bytes, local_bytes_per_thread, NULL, NULL, NULL, "
     "graph_node, NULL, graph, NULL, NULL, NULL FROM trace_kernel" OF_PROCESS
     " JOIN temp.nsys_name n ON n.id=name_id" KNOWN},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     ON_GPU_COLUMNS ", bytes INTEGER NOT NULL, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId "
                    "INTEGER, dstDeviceId INTEGER, graphNodeId INTEGER",
     KINDS "SELECT " ON_GPU ", bytes, o.kind, s.kind, t.kind, source_device, target_device, graph_node FROM trace_copy "
           "LEFT JOIN copy o ON o.id=operation_id LEFT JOIN memory s ON s.id=source_memory_id LEFT JOIN memory t ON "
           "t.id=target_memory_id" OF_PROCESS KNOWN},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     ON_GPU_COLUMNS ", value INTEGER, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
     KINDS "SELECT " ON_GPU ", NULL, bytes, graph_node, m.kind FROM trace_set LEFT JOIN memory m ON "
           "m.id=memory_id" OF_PROCESS KNOWN},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", ON_GPU_COLUMNS ", graphId INTEGER, graphExecId INTEGER",
     "SELECT " ON_GPU ", graph, NULL FROM trace_graph" OF_PROCESS KNOWN},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId "
     "INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER",
     "SELECT start_ns-@start, end_ns-@start, l.text='driver', global|(thread&16777215), correlation, n.text, result, "
     "NULL FROM trace_call" OF_PROCESS " JOIN temp.nsys_name n ON n.id=name_id JOIN trace_name l ON l.id=layer_id"},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", ON_GPU_COLUMNS ", syncType INTEGER NOT NULL, eventId INTEGER",
     "WITH kind AS MATERIALIZED (SELECT id, " SYNC_KIND " AS kind FROM trace_name) SELECT start_ns-@start, "
     "end_ns-@start, NULL, NULL, NULL, NULL, correlation, global, kind, NULL FROM trace_call JOIN kind ON "
     "kind.id=name_id" OF_PROCESS " WHERE kind IS NOT NULL"},
    {"NVTX_EVENTS",
     "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color "
     "INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value "
     "INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
     "jsonTextId INTEGER, jsonText TEXT",
     "SELECT start_ns-@start, end_ns-@start, CASE s.text WHEN 'PushPop' THEN 59 WHEN 'StartEnd' THEN 60 ELSE 34 END, "
     "r.id, NULL, NULL, n.text, global|(thread&16777215), iif(s.text='StartEnd', global|(end_thread&16777215), NULL), "
     "k.text, coalesce(domain_id, 0), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM trace_range r" OF_PROCESS
     " JOIN trace_name n ON n.id=name_id JOIN temp.nsys_name k ON k.id=name_id JOIN trace_name s ON s.id=style_id "
     "UNION ALL SELECT min(start_ns)-@start, NULL, 75, NULL, NULL, NULL, d.text, global, NULL, NULL, domain_id, NULL, "
     "NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM trace_range" OF_PROCESS " JOIN trace_name d ON d.id=domain_id "
     "GROUP BY process_id, domain_id"},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, address INTEGER, bytes INTEGER, "
     "memKind INTEGER, memoryOperationType INTEGER, correlationId INTEGER, streamId INTEGER",
     KINDS "SELECT time_ns-@start, global, device, context, address, bytes, m.kind, o.text!='allocation', correlation, "
           "stream FROM trace_memory LEFT JOIN memory m ON m.id=memory_id JOIN trace_name o ON "
           "o.id=operation_id" OF_PROCESS},
    {"TARGET_INFO_GPU",
     "id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, "
     "memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT, chipName TEXT, cuDevice INTEGER, "
     "computeMajor INTEGER, computeMinor INTEGER, maxBlocksPerSm INTEGER, maxRegistersPerBlock INTEGER, "
     "maxRegistersPerSm INTEGER, threadsPerWarp INTEGER",
     "SELECT iif(count(*) OVER (PARTITION BY ordinal)=1, ordinal, id-1), name, NULL, NULL, l2_bytes, memory_bytes, "
     "memory_clock_max_khz*memory_bus_bits*250, sm_clock_max_khz*1000, sm_count, " UUID ", "
     "chip, ordinal, cc_major, cc_minor, max_blocks_per_sm, max_registers_per_block, max_registers_per_sm, warp_size "
     "FROM device ORDER BY id"},
    /* Where one GPU alone has a number, that is the one which a process means by it. */
    {"TARGET_INFO_CUDA_DEVICE", "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER",
     "SELECT ordinal, ordinal, pid, " UUID ", sm_count FROM temp.nsys_process CROSS JOIN device GROUP BY pid, ordinal "
     "HAVING count(*)=1"},
    {"ENUM_CUDA_MEMCPY_OPER", ENUMERATION, COPY_KINDS},
    {"ENUM_CUDA_MEM_KIND", ENUMERATION, MEMORY_KINDS},
    {"ENUM_CUDA_DEV_MEM_EVENT_OPER", ENUMERATION,
     "VALUES(0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'), (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', "
     "'Deallocation')"},
    {"ENUM_CUPTI_SYNC_TYPE", ENUMERATION, SYNC_KINDS},
    {"ENUM_NSYS_EVENT_CLASS", ENUMERATION,
     "VALUES(0, 'TRACE_PROCESS_EVENT_CUDA_RUNTIME', 'CUDA runtime'), (1, 'TRACE_PROCESS_EVENT_CUDA_DRIVER', 'CUDA "
     "driver')"},
    {"ENUM_NSYS_EVENT_TYPE", ENUMERATION,
     "VALUES(34, 'NvtxMark', 'NVTX mark'), (59, 'NvtxPushPopRange', 'NVTX push/pop range'), (60, 'NvtxStartEndRange', "
     "'NVTX start/end range'), (75, 'NvtxDomainCreate', 'NVTX domain create')"},
    {"TARGET_INFO_SESSION_START_TIME", "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
     "SELECT @start, strftime('%Y-%m-%dT%H:%M:%S', @start/1000000000, 'unixepoch'), strftime('%Y-%m-%dT%H:%M:%S', "
     "@start/1000000000, 'unixepoch', 'localtime')"},
    {"ANALYSIS_DETAILS", "duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
     "SELECT e-@start, 0, e-@start FROM (SELECT max(e) AS e FROM (SELECT max(end_ns) AS e FROM trace_kernel UNION ALL "
     "SELECT max(end_ns) FROM trace_copy UNION ALL SELECT max(end_ns) FROM trace_set UNION ALL SELECT max(end_ns) FROM "
     "trace_call UNION ALL SELECT max(end_ns) FROM trace_range)) WHERE e IS NOT NULL"},
};

/* Append SQL with the beginning of the trace in place of "@start". */
static void put_rows(const char *sql, int64_t start_ns, kprof_strbuf *out)
{
    static const char word[] = "@start";
    for (const char *at; (at = strstr(sql, word)); sql = at + strlen(word)) {
        kprof_strbuf_append(out, sql, (size_t)(at - sql));
        kprof_strbuf_printf(out, "(%lld)", (long long)start_ns);
    }
    kprof_strbuf_puts(out, sql);
}

typedef struct writer {
    kprof_report *report;
    int64_t start_ns; /* of the trace */
    sqlite3 *into;
    const char *path;
} writer;

static kprof_status fail(const writer *to)
{
    return kprof_fail(KPROF_OUTPUT, "%s: cannot be written: %s", to->path, sqlite3_errmsg(to->into));
}

/* Make the table, and the statement that adds a row of as many values as `rows` has. */
static sqlite3_stmt *make_table(const writer *to, const nsys_table *table, sqlite3_stmt *rows)
{
    sqlite3_stmt *insert = NULL;
    KPROF_AUTO(kprof_strbuf) make = KPROF_STRBUF_INIT, add = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&make, "CREATE TABLE %s(%s)", table->name, table->columns);
    kprof_strbuf_printf(&add, "INSERT INTO %s VALUES(?", table->name);
    for (int i = 1; i < sqlite3_column_count(rows); i++)
        kprof_strbuf_puts(&add, ",?");
    kprof_strbuf_puts(&add, ")");
    if (sqlite3_exec(to->into, make.data, NULL, NULL, NULL) == SQLITE_OK)
        (void)sqlite3_prepare_v2(to->into, add.data, -1, &insert, NULL);
    return insert;
}

static kprof_status write_table(const writer *to, const nsys_table *table)
{
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    put_rows(table->rows, to->start_ns, &sql);
    sqlite3_stmt *rows = kprof_store_compile(to->report, sql.data);
    sqlite3_stmt *insert = rows ? make_table(to, table, rows) : NULL;
    bool is_written = insert != NULL;
    while (is_written && kprof_store_next(to->report, rows)) {
        for (int i = 0; i < sqlite3_column_count(rows); i++)
            sqlite3_bind_value(insert, i + 1, sqlite3_column_value(rows, i));
        is_written = sqlite3_step(insert) == SQLITE_DONE;
        (void)sqlite3_reset(insert);
    }
    const kprof_status status = to->report->status != KPROF_OK ? to->report->status : is_written ? KPROF_OK : fail(to);
    sqlite3_finalize(insert);
    sqlite3_finalize(rows);
    return status;
}

kprof_status kprof_report_write_nsys(kprof_report *report, const char *path)
{
    writer to = {.report = report, .path = path};
    kprof_status status = kprof_trace_check(report);
    if (status != KPROF_OK)
        return status;
    to.start_ns = kprof_store_integer(report, KPROF_TRACE_START);
    if (kprof_trace_begin_table(report, "nsys_string")) {
        kprof_store_exec(report, helpers);
        kprof_trace_end_table(report);
    }
    status = report->status;
    /* A file that is cut short is removed, so that nothing has to bring it back. */
    if (status == KPROF_OK && (sqlite3_open_v2(path, &to.into, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
                               sqlite3_exec(to.into, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL,
                                            NULL, NULL) != SQLITE_OK))
        status = fail(&to);
    for (size_t i = 0; i < COUNT_OF(tables) && status == KPROF_OK; i++)
        status = write_table(&to, &tables[i]);
    if (status == KPROF_OK && sqlite3_exec(to.into, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = fail(&to);
    sqlite3_close(to.into);
    return status;
}
