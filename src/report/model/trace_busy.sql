-- SQL of trace_busy.c; cmake/sql.cmake tells how texts stand for others.

-- gpu_busy: span is without kprof's times; busy, kernels and memory are ns of each; latency is the median from
-- call to kernel; depth and most_depth count kernels that were asked for and had not begun, as another one was asked
-- for. trace_gap: until host_ns the thread had not asked for what ended the gap.
# TABLES
CREATE TEMP TABLE gpu_busy(device INTEGER PRIMARY KEY, span REAL, busy REAL, kernels REAL, memory REAL, kernel_count
INTEGER, latency REAL, depth REAL, most_depth INTEGER);
CREATE TEMP TABLE gpu_idle_part(device INTEGER, cause TEXT, ns REAL, gaps INTEGER, longest_ns REAL);
CREATE TEMP TABLE trace_gap(id INTEGER PRIMARY KEY, device INTEGER, start_ns INTEGER, end_ns INTEGER, process_id
INTEGER, thread INTEGER, host_ns INTEGER)

# ROWS
SELECT device, start_ns, end_ns, k, process_id, thread, call_ns, return_ns, 0 FROM temp.trace_work
UNION ALL SELECT device, start_ns, end_ns, NULL, process_id, thread, NULL, NULL, 1
FROM temp.trace_own ORDER BY 1, 2, 3

# ASKED
SELECT device, call_ns, start_ns FROM temp.trace_work WHERE k AND call_ns IS NOT NULL
ORDER BY 1, 2

# POINTS
SELECT process_id, thread, start_ns, 2*id, device, start_ns, host_ns, end_ns FROM temp.trace_gap
UNION ALL SELECT process_id, thread, host_ns, 2*id+1, device, start_ns, host_ns, end_ns
FROM temp.trace_gap ORDER BY 1, 2, 3

# CALLS
SELECT process_id, thread, start_ns, end_ns, class FROM trace_call JOIN temp.call_class c ON c.id=name_id
WHERE end_ns>=start_ns ORDER BY 1, 2, 3

-- The class of the calls of each name.
# CALL_CLASSES
CREATE TEMP TABLE call_class AS SELECT id, CASE WHEN text GLOB '*ynchronize*' THEN 0 WHEN text GLOB '*emcpy*' THEN 1
WHEN text GLOB '*aunch*' THEN 2 WHEN text GLOB '*lloc*' OR text GLOB '*Free*' OR text GLOB '*MemCreate*' OR text GLOB
'*Map*' THEN 3 ELSE 4 END AS class FROM trace_name;
CREATE UNIQUE INDEX temp.call_class_id ON call_class(id)
