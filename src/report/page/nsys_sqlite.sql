-- SQL of nsys_sqlite.c; cmake/sql.cmake tells how texts stand for others.

-- Texts have numbers, and processes the numbers that nsys gives them: 24 bits of the host, 24 of the process and,
-- of a thread, 24 of that.
# HELPERS
CREATE TEMP TABLE nsys_string(id INTEGER PRIMARY KEY, value TEXT UNIQUE);
INSERT OR IGNORE INTO temp.nsys_string(value) SELECT text FROM trace_name
ORDER BY id;
INSERT OR IGNORE INTO temp.nsys_string(value) SELECT demangled FROM trace_name
UNION ALL SELECT function FROM trace_name;
CREATE TEMP TABLE nsys_name(id INTEGER PRIMARY KEY, text INTEGER, demangled INTEGER, function INTEGER);
INSERT INTO temp.nsys_name SELECT n.id, t.id, d.id, f.id FROM trace_name n JOIN temp.nsys_string t ON t.value=n.text
JOIN temp.nsys_string d ON d.value=n.demangled JOIN temp.nsys_string f ON f.value=n.function;
CREATE TEMP TABLE nsys_process(id INTEGER PRIMARY KEY, global INTEGER, pid INTEGER, name TEXT);
INSERT INTO temp.nsys_process SELECT id, (dense_rank() OVER (ORDER BY host)<<48)|((pid&16777215)<<24), pid, name
FROM process

-- Addresses of instructions stand for the functions that wanted a page.
# MANAGED_HELPERS
INSERT OR IGNORE INTO temp.nsys_string(value) SELECT DISTINCT printf('0x%x', instruction) FROM trace_managed
WHERE instruction IS NOT NULL
UNION ALL SELECT '[Unknown]'

# OF_PROCESS
JOIN temp.nsys_process p ON p.id=process_id

# KNOWN
WHERE end_ns>=start_ns

# ON_GPU
start_ns-@start, end_ns-@start, device, context, NULL, stream, correlation, global

# ON_GPU_COLUMNS
start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, greenContextId INTEGER, streamId
INTEGER, correlationId INTEGER, globalPid INTEGER

# ENUMERATION
id INTEGER NOT NULL, name TEXT, label TEXT

# COPY_KINDS
VALUES(0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'), (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), (2,
'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'), (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'), (4,
'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'), (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'), (6,
'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'), (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'), (8,
'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'), (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (10,
'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer'), (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'), (12,
'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host'), (13, 'CUDA_MEMCPY_KIND_UVM_DTOD', 'Unified Device-to-Device')

# MEMORY_KINDS
VALUES(0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2,
'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'), (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'), (4,
'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'), (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'), (6,
'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'), (65535, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown')

-- What the trace names, by the labels above.
# KINDS
WITH copy_kind(kind, name, label) AS ($COPY_KINDS), memory_kind(kind, name, label) AS ($MEMORY_KINDS), copy AS
MATERIALIZED (SELECT n.id, kind FROM trace_name n JOIN copy_kind ON label=text), memory AS MATERIALIZED
(SELECT n.id, kind FROM trace_name n JOIN memory_kind ON label=text)

-- Calls in which the host waits; which context or stream for is not known.
# SYNC_KINDS
VALUES(1, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE', 'Event sync'), (2,
'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT', 'Stream wait event'), (3,
'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE', 'Stream sync'), (4,
'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE', 'Context sync')

# SYNC_KIND
CASE WHEN text GLOB 'cu*EventSynchronize*' THEN 1 WHEN text GLOB 'cu*StreamWaitEvent*' THEN 2 WHEN text GLOB
'cu*StreamSynchronize*' THEN 3 WHEN text GLOB 'cudaDeviceSynchronize*' OR text GLOB 'cu*CtxSynchronize*' OR text GLOB
'cudaThreadSynchronize*' THEN 4 END

-- As nvidia-smi writes it.
# UUID
'GPU-' || substr(uuid, 1, 8) || '-' || substr(uuid, 9, 4) || '-' || substr(uuid, 13, 4) || '-' || substr(uuid, 17, 4)
|| '-' || substr(uuid, 21)

# COLUMNS_OF_STRINGIDS
id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL

# ROWS_OF_STRINGIDS
SELECT id, value FROM temp.nsys_string

# COLUMNS_OF_PROCESSES
globalPid INTEGER, pid INTEGER, name TEXT

# ROWS_OF_PROCESSES
SELECT global, pid, name FROM temp.nsys_process

# COLUMNS_OF_KERNEL
$ON_GPU_COLUMNS, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER,
cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY
INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER,
localMemoryTotal INTEGER, gridId INTEGER, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig
INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER

# ROWS_OF_KERNEL
SELECT $ON_GPU, n.demangled, n.function, n.text, NULL, NULL, registers_per_thread, grid_x, grid_y, grid_z, block_x,
block_y, block_z, static_smem_bytes, dynamic_smem_bytes, local_bytes_per_thread, NULL, NULL, NULL, graph_node, NULL,
graph, NULL, NULL, NULL FROM trace_kernel $OF_PROCESS JOIN temp.nsys_name n ON n.id=name_id $KNOWN

# COLUMNS_OF_MEMCPY
$ON_GPU_COLUMNS, bytes INTEGER NOT NULL, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER,
dstDeviceId INTEGER, graphNodeId INTEGER, virtualAddress INTEGER

# ROWS_OF_MEMCPY
$KINDS SELECT $ON_GPU, bytes, o.kind, s.kind, t.kind, source_device, target_device, graph_node, NULL
FROM trace_copy LEFT JOIN copy o ON o.id=operation_id LEFT JOIN memory s ON s.id=source_memory_id
LEFT JOIN memory t ON t.id=target_memory_id $OF_PROCESS $KNOWN

-- Unified memory that moves, as copies.
# ROWS_OF_MANAGED_MEMCPY
$KINDS SELECT start_ns-@start, end_ns-@start, coalesce(target_device, source_device), NULL, NULL, NULL, NULL, global,
bytes, k.kind, 4, 4, source_device, target_device, NULL, address FROM trace_managed JOIN trace_name n ON
n.id=operation_id JOIN copy_kind k ON k.label='Unified ' || n.text $OF_PROCESS WHERE end_ns>=start_ns AND bytes>=0

# COLUMNS_OF_CPU_PAGE_FAULTS
start INTEGER NOT NULL, globalPid INTEGER NOT NULL, address INTEGER NOT NULL, originalFaultPc INTEGER, CpuInstruction
INTEGER NOT NULL, module INTEGER NOT NULL, unresolvedFaultPc INTEGER, sourceFile INTEGER, sourceLine INTEGER

# ROWS_OF_CPU_PAGE_FAULTS
SELECT start_ns-@start, global, address, instruction, s.id, u.id, 1, NULL, NULL FROM trace_managed JOIN trace_name n ON
n.id=operation_id AND n.text='CPU page fault' JOIN temp.nsys_string u ON u.value='[Unknown]' JOIN temp.nsys_string s ON
s.value=coalesce(printf('0x%x', instruction), '[Unknown]') $OF_PROCESS

# COLUMNS_OF_GPU_PAGE_FAULTS
start INTEGER NOT NULL, end INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address INTEGER
NOT NULL, numberOfPageFaults INTEGER NOT NULL, faultAccessType INTEGER

# ROWS_OF_GPU_PAGE_FAULTS
SELECT start_ns-@start, end_ns-@start, global, source_device, address, faults, NULL FROM trace_managed JOIN trace_name
n ON n.id=operation_id AND n.text='GPU page fault' $OF_PROCESS
WHERE end_ns>=start_ns AND source_device>=0 AND faults>=0

# OTHER_MANAGED
SELECT count(*) FROM trace_managed JOIN trace_name ON trace_name.id=operation_id
WHERE text NOT GLOB '*-to-*' AND text NOT GLOB '*fault'

# COLUMNS_OF_MEMSET
$ON_GPU_COLUMNS, value INTEGER, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER

# ROWS_OF_MEMSET
$KINDS SELECT $ON_GPU, NULL, bytes, graph_node, m.kind FROM trace_set LEFT JOIN memory m ON m.id=memory_id $OF_PROCESS
$KNOWN

# COLUMNS_OF_GRAPH_TRACE
$ON_GPU_COLUMNS, graphId INTEGER, graphExecId INTEGER

# ROWS_OF_GRAPH_TRACE
SELECT $ON_GPU, graph, NULL FROM trace_graph $OF_PROCESS $KNOWN

# COLUMNS_OF_RUNTIME
start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER

# ROWS_OF_RUNTIME
SELECT start_ns-@start, end_ns-@start, l.text='driver', global|(thread&16777215), correlation, n.text, result, NULL
FROM trace_call $OF_PROCESS JOIN temp.nsys_name n ON n.id=name_id JOIN trace_name l ON l.id=layer_id $KNOWN

# COLUMNS_OF_PROFILER_OVERHEAD
start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER

# ROWS_OF_PROFILER_OVERHEAD
SELECT start_ns-@start, end_ns-@start, global|(coalesce(thread, 0)&16777215), n.text, NULL FROM trace_overhead
$OF_PROCESS JOIN temp.nsys_name n ON n.id=name_id $KNOWN

# COLUMNS_OF_SYNCHRONIZATION
$ON_GPU_COLUMNS, syncType INTEGER NOT NULL, eventId INTEGER

# ROWS_OF_SYNCHRONIZATION
WITH kind AS MATERIALIZED (SELECT id, $SYNC_KIND AS kind FROM trace_name) SELECT start_ns-@start, end_ns-@start, NULL,
NULL, NULL, NULL, correlation, global, kind, NULL FROM trace_call JOIN kind ON kind.id=name_id $OF_PROCESS
WHERE kind IS NOT NULL AND end_ns>=start_ns

# COLUMNS_OF_NVTX_EVENTS
start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER,
text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value
INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT

# ROWS_OF_NVTX_EVENTS
SELECT start_ns-@start, end_ns-@start, CASE s.text WHEN 'PushPop' THEN 59 WHEN 'StartEnd' THEN 60 ELSE 34 END, r.id,
NULL, NULL, n.text, global|(thread&16777215), iif(s.text='StartEnd', global|(end_thread&16777215), NULL), k.text,
coalesce(domain_id, 0), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM trace_range r $OF_PROCESS JOIN trace_name
n ON n.id=name_id JOIN temp.nsys_name k ON k.id=name_id JOIN trace_name s ON s.id=style_id
WHERE coalesce(end_ns>=start_ns, 1)
UNION ALL SELECT min(start_ns)-@start, NULL, 75, NULL, NULL, NULL, d.text, global, NULL, NULL, domain_id, NULL, NULL,
NULL, NULL, NULL, NULL, NULL, NULL FROM trace_range $OF_PROCESS JOIN trace_name d ON d.id=domain_id
GROUP BY process_id, domain_id

# COLUMNS_OF_CUDA_GPU_MEMORY_USAGE_EVENTS
start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER, contextId INTEGER, address INTEGER, bytes INTEGER,
memKind INTEGER, memoryOperationType INTEGER, correlationId INTEGER, streamId INTEGER

# ROWS_OF_CUDA_GPU_MEMORY_USAGE_EVENTS
$KINDS SELECT time_ns-@start, global, device, context, address, bytes, m.kind, o.text!='allocation', correlation,
stream FROM trace_memory LEFT JOIN memory m ON m.id=memory_id JOIN trace_name o ON o.id=operation_id $OF_PROCESS

-- Samples of counters: both times are that at which a sample begins. The number of their type has that of the GPU in
-- its last byte.
# SAMPLED
SELECT *, $KPROF_TRACE_GPU AS gpu, 281479271677952+$KPROF_TRACE_GPU AS type FROM temp.trace_sampled

# COLUMNS_OF_GPU_METRICS
rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, metricId INTEGER, value REAL

# ROWS_OF_GPU_METRICS
SELECT start_ns-@start, start_ns-@start, type, name_id, round(value, 6) FROM ($SAMPLED) WHERE value IS NOT NULL
ORDER BY start_ns

# COLUMNS_OF_TARGET_INFO_GPU_METRICS
typeId INTEGER NOT NULL, sourceId INTEGER, typeName TEXT, metricId INTEGER NOT NULL, metricName TEXT NOT NULL

# ROWS_OF_TARGET_INFO_GPU_METRICS
SELECT DISTINCT type, gpu, 'GPU Metrics [' || gpu || ']', name_id, label || iif(unit='', '', ' [' || unit || ']')
FROM ($SAMPLED) JOIN temp.sampled_metric USING(name_id)

# COLUMNS_OF_TARGET_INFO_GPU
id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER,
memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT, chipName TEXT, cuDevice INTEGER, computeMajor
INTEGER, computeMinor INTEGER, maxBlocksPerSm INTEGER, maxRegistersPerBlock INTEGER, maxRegistersPerSm INTEGER,
threadsPerWarp INTEGER

# ROWS_OF_TARGET_INFO_GPU
SELECT gpu, name, NULL, NULL, l2_bytes, memory_bytes,
memory_clock_max_khz*memory_bus_bits*250, sm_clock_max_khz*1000, sm_count, $UUID, chip, device.ordinal, cc_major,
cc_minor, max_blocks_per_sm, max_registers_per_block, max_registers_per_sm, warp_size FROM temp.trace_gpu
LEFT JOIN device ON device.id=device_id GROUP BY gpu

# COLUMNS_OF_TARGET_INFO_CUDA_DEVICE
gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER

-- Which GPU a process means by its number for it.
# ROWS_OF_TARGET_INFO_CUDA_DEVICE
SELECT gpu, g.ordinal, pid, $UUID, sm_count FROM temp.trace_gpu g LEFT JOIN device ON device.id=device_id
JOIN temp.nsys_process p ON p.id=process

# ROWS_OF_ENUM_CUDA_DEV_MEM_EVENT_OPER
VALUES(0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'), (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION',
'Deallocation')

# ROWS_OF_ENUM_NSYS_EVENT_CLASS
VALUES(0, 'TRACE_PROCESS_EVENT_CUDA_RUNTIME', 'CUDA runtime'), (1, 'TRACE_PROCESS_EVENT_CUDA_DRIVER', 'CUDA driver')

# ROWS_OF_ENUM_NSYS_EVENT_TYPE
VALUES(34, 'NvtxMark', 'NVTX mark'), (59, 'NvtxPushPopRange', 'NVTX push/pop range'), (60, 'NvtxStartEndRange',
'NVTX start/end range'), (75, 'NvtxDomainCreate', 'NVTX domain create')

# COLUMNS_OF_TARGET_INFO_SESSION_START_TIME
utcEpochNs INTEGER, utcTime TEXT, localTime TEXT

# ROWS_OF_TARGET_INFO_SESSION_START_TIME
SELECT @start, strftime('%Y-%m-%dT%H:%M:%S', @start/1000000000, 'unixepoch'), strftime('%Y-%m-%dT%H:%M:%S',
@start/1000000000, 'unixepoch', 'localtime')

# COLUMNS_OF_ANALYSIS_DETAILS
duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL

# ROWS_OF_ANALYSIS_DETAILS
SELECT e-@start, 0, e-@start FROM (SELECT max(e) AS e FROM (SELECT max(end_ns) AS e
FROM trace_kernel
UNION ALL SELECT max(end_ns) FROM trace_copy
UNION ALL SELECT max(end_ns) FROM trace_set
UNION ALL SELECT max(end_ns) FROM trace_call
UNION ALL SELECT max(end_ns) FROM trace_range)) WHERE e IS NOT NULL
