-- SQL of trace_lost.c; cmake/sql.cmake tells how texts stand for others.

-- gpu_busy: span is without kprof's times; busy, kernels and memory are ns of each; latency is the median from call to
-- kernel; depth and most_depth count kernels that were asked for and had not begun, as another one was asked for.
-- gpu_idle_part: gaps by cause, once for each device or more often. trace_gap: until host_ns the thread had not asked
-- for what ended the gap.
# TABLES
CREATE TEMP TABLE gpu_busy(device INTEGER PRIMARY KEY, span REAL, busy REAL, kernels REAL, memory REAL, kernel_count
INTEGER, latency REAL, depth REAL, most_depth INTEGER);
CREATE TEMP TABLE gpu_idle_part(device INTEGER, cause TEXT, ns REAL, gaps INTEGER, longest_ns REAL);
CREATE TEMP TABLE trace_gap(id INTEGER PRIMARY KEY, device INTEGER, start_ns INTEGER, end_ns INTEGER, process_id
INTEGER, thread INTEGER, host_ns INTEGER)

# ROWS
SELECT device, start_ns, end_ns, k, process_id, thread, call_ns, return_ns, 0 FROM temp.trace_work
UNION ALL SELECT device, start_ns, end_ns, NULL, process_id, thread, start_ns, NULL, 1
FROM temp.trace_own ORDER BY 1, 2, 3

-- A kernel that begins before its call, as in a damaged report, is not one that waits.
# QUEUES
SELECT device, call_ns, 1 FROM temp.trace_work WHERE k AND start_ns>call_ns
UNION ALL SELECT device, start_ns, -1 FROM temp.trace_work WHERE k AND start_ns>call_ns
ORDER BY 1, 2, 3

# SET_DEPTH
UPDATE temp.gpu_busy SET depth=?2, most_depth=?3 WHERE device=?1

-- 2*id: a gap begins; 2*id+1: its thread asks for what ends it.
# POINTS
SELECT process_id, thread, start_ns, 2*id, device, start_ns, host_ns, end_ns FROM temp.trace_gap
UNION ALL SELECT process_id, thread, host_ns, 2*id+1, device, start_ns, host_ns, end_ns
FROM temp.trace_gap ORDER BY 1, 2, 3

# GPU_IDLE
CREATE TEMP TABLE gpu_idle AS SELECT device, cause, total(ns) AS ns, CAST(total(gaps) AS INTEGER) AS gaps,
max(longest_ns) AS longest_ns FROM temp.gpu_idle_part GROUP BY device, cause

# CALLS
SELECT process_id, thread, start_ns, end_ns, class FROM trace_call JOIN temp.call_class c ON c.id=name_id
WHERE end_ns>=start_ns ORDER BY 1, 2, 3

-- The class of the calls of each name.
# CALL_CLASSES
CREATE TEMP TABLE call_class AS SELECT id, CASE WHEN text GLOB '*ynchronize*' THEN 0 WHEN text GLOB '*emcpy*' THEN 1
WHEN text GLOB '*aunch*' THEN 2 WHEN text GLOB '*lloc*' OR text GLOB '*Free*' OR text GLOB '*MemCreate*' OR text GLOB
'*Map*' THEN 3 ELSE 4 END AS class FROM trace_name;
CREATE UNIQUE INDEX temp.call_class_id ON call_class(id)

# KNOWN
WHERE end_ns>=start_ns

-- Of the kernels that one launch of a graph asked for the first on each GPU.
# FIRST_NODES
SELECT id FROM (SELECT id, min(start_ns) FROM trace_kernel $KNOWN AND graph IS NOT NULL
GROUP BY process_id, correlation, device)

-- All that runs on GPUs, with k 1 for kernels and graphs, and 2 for the further kernels of a graph.
# WORK
work AS (SELECT process_id, device, start_ns, end_ns, correlation, iif(graph IS NULL OR id IN ($FIRST_NODES), 1,
2) AS k FROM trace_kernel $KNOWN
UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 1 FROM trace_graph $KNOWN
UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 0 FROM trace_copy $KNOWN
UNION ALL SELECT process_id, device, start_ns, end_ns, correlation, 0 FROM trace_set $KNOWN)

-- Times of kprof's in which not all that runs is recorded.
# UNRECORDED
JOIN trace_name n ON n.id=name_id WHERE text IN ('$KPROF_TRACE_OWN', '$KPROF_TRACE_COUNTED', '$KPROF_TRACE_LEFT_OUT')
AND end_ns>=start_ns

-- The work on GPUs, with the call that asked for it. From here on devices have the numbers of temp.trace_gpu.
# TRACE_WORK
CREATE TEMP TABLE trace_work AS WITH $WORK SELECT $KPROF_TRACE_GPU AS device, process_id, work.start_ns, work.end_ns, k,
call.start_ns AS call_ns, call.end_ns AS return_ns, thread FROM work LEFT JOIN temp.first_call call USING(process_id,
correlation)

-- The times in which kprof measured, or that the trace leaves out, of each process and the devices that it uses,
-- while these had work. What runs then is not recorded, and no gap.
# OWN
CREATE TEMP TABLE trace_own AS WITH mine AS MATERIALIZED (SELECT process_id, start_ns, end_ns, thread
FROM trace_overhead $UNRECORDED), $WORK, used AS MATERIALIZED (SELECT process_id, device, min(start_ns) AS first_ns,
max(end_ns) AS last_ns FROM work WHERE EXISTS (SELECT 1 FROM mine) GROUP BY process_id, device)
SELECT process_id, $KPROF_TRACE_GPU AS device, max(start_ns, first_ns) AS start_ns, min(end_ns, last_ns) AS end_ns,
thread
FROM mine JOIN used USING(process_id) WHERE start_ns<last_ns AND end_ns>first_ns

# ENDS_OF_RANGES
SELECT process_id, 0, start_ns, 2*id FROM trace_range WHERE end_ns>=start_ns
UNION ALL SELECT process_id, 0, end_ns, 2*id+1 FROM trace_range WHERE end_ns>=start_ns
ORDER BY 1, 3

-- Not only of the part of the time that was asked for: a range may begin before and end after that.
# ALL_WORK
SELECT process_id, 0, start_ns, end_ns, 0 FROM main.trace_kernel $KNOWN
UNION ALL SELECT process_id, 0, start_ns, end_ns, 0 FROM main.trace_graph $KNOWN
UNION ALL SELECT process_id, 0, start_ns, end_ns, 0 FROM main.trace_copy $KNOWN
UNION ALL SELECT process_id, 0, start_ns, end_ns, 0 FROM main.trace_set $KNOWN

# ALL_WORK_BY_TIME
$ALL_WORK ORDER BY 1, 3

# WORK_AND_UNRECORDED
$ALL_WORK
UNION ALL SELECT process_id, 0, start_ns, end_ns, 0 FROM main.trace_overhead $UNRECORDED
ORDER BY 1, 3

-- range, ns, known_ns (without what was not recorded), busy_ns: of each NVTX range that has ended; any GPU counts on
-- which its process works.
# STEPS
CREATE TEMP TABLE trace_step AS SELECT coalesce(g.text, '') || ':' || n.text AS range, end_ns-start_ns AS ns,
end_ns-start_ns-(d.c0-c.c0)+(b.c0-a.c0) AS known_ns, b.c0-a.c0 AS busy_ns FROM trace_range r JOIN trace_name n ON
n.id=name_id LEFT JOIN trace_name g ON g.id=domain_id JOIN temp.range_work a ON a.point=2*r.id JOIN temp.range_work b
ON b.point=2*r.id+1 JOIN temp.range_cover c ON c.point=2*r.id JOIN temp.range_cover d ON d.point=2*r.id+1

-- operation, source, target, ns, bytes, is_small (less than 64 KiB), follows (a small one that comes behind
-- another one in its stream, and the thread launches nothing between them, within 1,000 calls; none of a graph, which
-- may have kernels between them), way_ns (what it took to reach the GPU, while its stream did nothing), new_ns (in
-- which no earlier copy of pageable memory goes on, or of other memory)
# TRANSFERS
CREATE TEMP TABLE trace_transfer AS WITH copies AS (SELECT o.text AS operation, s.text AS source, t.text AS target,
end_ns-start_ns AS ns, max(0, min(start_ns-lag(end_ns) OVER same, 10000)) AS way_ns,
max(0, end_ns-max(start_ns, coalesce(max(end_ns) OVER alike, start_ns))) AS new_ns, bytes, bytes<65536 AS is_small,
bytes<65536 AND graph IS NULL AND lag(iif(graph IS NULL, bytes, NULL)) OVER same<65536 AS is_next, process_id,
lag(correlation) OVER same AS before, correlation
FROM trace_copy JOIN trace_name o ON o.id=operation_id JOIN trace_name s ON s.id=source_memory_id
JOIN trace_name t ON t.id=target_memory_id $KNOWN WINDOW same AS (PARTITION BY process_id, device, stream, operation_id
ORDER BY start_ns), alike AS (PARTITION BY process_id, device, 'Pageable' IN (s.text, t.text) ORDER BY start_ns
ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) SELECT operation, source, target, ns, new_ns, way_ns, bytes,
is_small, is_next AND NOT EXISTS (SELECT 1 FROM (SELECT name_id, thread FROM temp.first_call c
WHERE c.process_id=copies.process_id AND c.correlation>before AND c.correlation<copies.correlation
ORDER BY c.correlation LIMIT 1000) c JOIN temp.call_class ON id=name_id
WHERE class=2 AND c.thread IS (SELECT thread FROM temp.first_call own WHERE own.process_id=copies.process_id AND
own.correlation=copies.correlation)) AS follows FROM copies

-- memory, device, is_new (an allocation), in_loop (between the first and the last kernel of the process), call_ns; and
-- how much was allocated at most.
# ALLOCATIONS
CREATE TEMP TABLE trace_allocation AS WITH loop AS (SELECT process_id, min(start_ns) AS first, max(start_ns) AS last
FROM temp.trace_work WHERE k GROUP BY process_id) SELECT n.text AS memory, $KPROF_TRACE_GPU AS device, is_new,
coalesce(time_ns BETWEEN first AND last, 0) AS in_loop, call.end_ns-call.start_ns AS call_ns FROM temp.memory_move
JOIN trace_name n ON n.id=memory_id LEFT JOIN loop USING(process_id)
LEFT JOIN temp.first_call call USING(process_id, correlation);
CREATE TEMP TABLE trace_memory_most AS SELECT n.text AS memory, $KPROF_TRACE_GPU AS device, max(level) AS level
FROM temp.memory_level JOIN trace_name n ON n.id=memory_id GROUP BY 1, 2
