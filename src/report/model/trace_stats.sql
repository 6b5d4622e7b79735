-- Tables that sum up a trace: trace_stats.c has their titles, and cmake/sql.cmake tells how texts stand for others.

-- Columns about the durations `d` of the rows of a group.
# SHARE
round(100*total(d)/nullif(sum(total(d)) OVER (), 0), 1) AS "Time (%)",

# TIMES(count)
$SHARE CAST(total(d) AS INTEGER) AS "Total Time (ns)", count(*) AS "$count", $SPREAD{d}

# SPREAD(d)
round(avg($d), 1) AS "Avg (ns)", kprof_median($d) AS "Med (ns)", min($d) AS "Min (ns)", max($d) AS "Max (ns)",
round(kprof_deviation($d), 1) AS "StdDev (ns)"

-- Rows of millions of kernels have numbers for names ("@names", "@kernel"), which texts ("@shown") replace at last.

-- Work of the GPU, as rows of its time d, its category and its name.
# KERNELS
SELECT end_ns-start_ns AS d, 'CUDA_KERNEL' AS category, @kernel AS name FROM trace_kernel k JOIN @names n ON
n.id=name_id WHERE end_ns>=start_ns

# MEMORY_TIMES
SELECT end_ns-start_ns AS d, 'MEMORY_OPER' AS category, '[CUDA memcpy ' || n.text || ']' AS name
FROM trace_copy JOIN trace_name n ON n.id=operation_id WHERE end_ns>=start_ns
UNION ALL SELECT end_ns-start_ns, 'MEMORY_OPER', '[CUDA memset]' FROM trace_set
WHERE end_ns>=start_ns

# CALLS
SELECT end_ns-start_ns AS d, 'CUDA_API' AS category, n.id AS name FROM trace_call JOIN trace_name n ON n.id=name_id
WHERE end_ns>=start_ns

# MEMORY_SIZES
SELECT bytes/1e6 AS d, '[CUDA memcpy ' || n.text || ']' AS name FROM trace_copy JOIN trace_name n ON n.id=operation_id
UNION ALL SELECT bytes/1e6, '[CUDA memset]' FROM trace_set

# RANGES
SELECT end_ns-start_ns AS d, s.text AS style, coalesce(g.text, '') || ':' || n.text AS name
FROM trace_range r JOIN trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id
LEFT JOIN trace_name g ON g.id=domain_id WHERE end_ns>=start_ns

-- With the line of the program that made the call; NULL: its call stack is not known.
# BY_LINE
LEFT JOIN temp.caller c ON c.process_id=k.process_id AND c.correlation=k.correlation
LEFT JOIN stack ON stack.id=stack_id

-- Ranges with their names, and which others each one lies in, the outermost first.
# NAMED_RANGES
SELECT r.id AS range, start_ns, end_ns, pid, thread, s.text AS style, coalesce(g.text, '') || ':' || n.text AS name
FROM trace_range r JOIN trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id
LEFT JOIN trace_name g ON g.id=domain_id JOIN process p ON p.id=process_id

-- Texts end at 64 ranges, so that a row stays small however deep its range lies.
# STACKS(tree)
WITH RECURSIVE stacks(range, parent, level, stack, dashes) AS (SELECT range, parent, level, ':' || range, ''
FROM temp.$tree WHERE parent IS NULL
UNION ALL SELECT t.range, t.parent, t.level, stack || iif(t.level<64, ':' || t.range, ''), dashes || iif(t.level<64,
'--', '') FROM stacks CROSS JOIN temp.$tree t ON t.parent=stacks.range)

-- The innermost range that the call of a kernel is in, before the kernel's name.
# IN_RANGE
coalesce((SELECT coalesce(rg.text, '') || ':' || rn.text FROM temp.kernel_range kr JOIN trace_range r ON r.id=kr.range
JOIN trace_name rn ON rn.id=r.name_id LEFT JOIN trace_name rg ON rg.id=r.domain_id
WHERE kr.kernel=k.id) || '/', '') ||

# PROJECTED_CHILDREN
SELECT parent AS range, count(*) AS children FROM temp.range_span JOIN temp.range_tree USING(range)
WHERE parent IS NOT NULL GROUP BY parent

# GRID
printf('%4d %4d %4d', grid_x, grid_y, grid_z)

# BLOCK
printf('%4d %4d %4d', block_x, block_y, block_z)

# SHAPE
grid_x, grid_y, grid_z, block_x, block_y, block_z

-- Each kernel with the call that asked for it. CROSS JOIN keeps the tables' order: others take hours.
# EXECUTIONS(api, names)
SELECT process_id, pid, c.thread AS tid, $KPROF_TRACE_LABEL AS device, c.start_ns AS api_start, c.end_ns-c.start_ns
AS a, k.start_ns-c.end_ns AS q,
k.end_ns-k.start_ns AS k, max(k.end_ns, c.end_ns)-c.start_ns AS t, $api AS api, @kernel AS name, k.start_ns,
c.end_ns AS api_end, $SHAPE FROM trace_kernel k CROSS JOIN temp.first_call c USING(process_id, correlation) CROSS JOIN
process p ON p.id=k.process_id CROSS JOIN trace_name api ON api.id=c.name_id CROSS JOIN $names n ON n.id=k.name_id
WHERE k.end_ns>=k.start_ns

-- Each kernel and shape with its time (t), and what was measured of it.
# SHAPES
SELECT n.text, demangled, function, s.*, measured, ns, limited, limit_pct, finding, gain_pct
FROM temp.trace_shape s JOIN trace_name n ON n.id=name_id LEFT JOIN temp.trace_counted j ON j.kernel=n.text AND
(j.grid_x, j.grid_y, j.grid_z, j.block_x, j.block_y, j.block_z, j.dynamic_smem_bytes)=(s.grid_x, s.grid_y, s.grid_z,
s.block_x, s.block_y, s.block_z, s.dynamic_smem_bytes)

-- The kernels that take four fifths of the time of all, eight at most, and the time of each in shapes with counters.
# WORTH
SELECT f, c, t, counted, whole, i FROM (SELECT f, c, t, counted, sum(t) OVER (ORDER BY t DESC, f ROWS BETWEEN
UNBOUNDED PRECEDING AND CURRENT ROW)-t AS before, sum(t) OVER () AS whole, row_number() OVER
(ORDER BY t DESC, f) AS i FROM (SELECT function AS f, sum(c) AS c, total(t) AS t, total(CASE WHEN measured>0 THEN t
END) AS counted FROM ($SHAPES) GROUP BY function)) WHERE before<0.8*whole AND i<=8

-- Events of memory that the host and GPUs share: bytes, faults, and ns of moves.
# MANAGED
SELECT address, CASE text WHEN 'Host-to-Device' THEN bytes END AS to_device, CASE text WHEN 'Device-to-Host' THEN
bytes END AS to_host, CASE text WHEN 'CPU page fault' THEN 1 END AS cpu, faults AS gpu, CASE WHEN text IN
('Host-to-Device', 'Device-to-Host') AND end_ns>=start_ns THEN end_ns-start_ns END AS ns FROM trace_managed
JOIN trace_name n ON n.id=operation_id

# cuda_gpu_kern_sum
SELECT $TIMES{Instances}, @shown AS "Name" FROM ($KERNELS) GROUP BY name
ORDER BY total(d) DESC, 9

# cuda_api_sum
SELECT $TIMES{Num Calls}, @shown AS "Name" FROM ($CALLS) GROUP BY name ORDER BY total(d) DESC, 9

# cuda_gpu_mem_time_sum
SELECT $TIMES{Count}, name AS "Operation" FROM ($MEMORY_TIMES) GROUP BY name
ORDER BY total(d) DESC, name

# cuda_gpu_mem_size_sum
SELECT round(total(d), 3) AS "Total (MB)", count(*) AS "Count", round(avg(d), 3) AS "Avg (MB)", round(kprof_median(d),
3) AS "Med (MB)", round(min(d), 3) AS "Min (MB)", round(max(d), 3) AS "Max (MB)", round(kprof_deviation(d),
3) AS "StdDev (MB)", name AS "Operation" FROM ($MEMORY_SIZES) GROUP BY name
ORDER BY total(d) DESC, name

# cuda_gpu_sum
SELECT $TIMES{Instances}, category AS "Category", @shown AS "Operation" FROM ($KERNELS
UNION ALL $MEMORY_TIMES) GROUP BY category, name ORDER BY total(d) DESC, 10

# cuda_api_gpu_sum
SELECT $TIMES{Instances}, category AS "Category", @shown AS "Operation" FROM ($CALLS
UNION ALL $KERNELS
UNION ALL $MEMORY_TIMES) GROUP BY category, name ORDER BY total(d) DESC, 10

# cuda_gpu_kern_gb_sum
SELECT $TIMES{Instances}, $GRID AS "GridXYZ", $BLOCK AS "BlockXYZ", @shown AS "Name"
FROM (SELECT end_ns-start_ns AS d, $SHAPE, @kernel AS name FROM trace_kernel k JOIN @names n ON n.id=name_id
WHERE end_ns>=start_ns) GROUP BY name, $SHAPE
ORDER BY total(d) DESC, 11, $SHAPE

# graph_sum
SELECT $TIMES{Instances}, pid AS "PID", graph AS "Graph" FROM (SELECT end_ns-start_ns AS d, process_id, graph
FROM trace_graph WHERE end_ns>=start_ns) JOIN process p ON p.id=process_id
GROUP BY process_id, graph ORDER BY total(d) DESC, process_id, graph

# cuda_gpu_trace
SELECT start_ns-@start AS "Start (ns)", d AS "Duration (ns)", correlation AS "CorrId", gx AS "GrdX", gy AS "GrdY",
gz AS "GrdZ", bx AS "BlkX", by AS "BlkY", bz AS "BlkZ", reg AS "Reg/Trd", round(smem/1e6, 3) AS "StcSMem (MB)",
round(dmem/1e6, 3) AS "DymSMem (MB)", round(bytes/1e6, 3) AS "Bytes (MB)", CASE WHEN d>0 THEN round(bytes*1e3/d, 3)
END AS "Throughput (MB/s)", sk AS "SrcMemKd", dk AS "DstMemKd", device AS "Device", context AS "Ctx",
stream AS "Strm", name AS "Name" FROM (SELECT start_ns, end_ns-start_ns AS d, correlation, grid_x AS gx, grid_y AS gy,
grid_z AS gz, block_x AS bx, block_y AS by, block_z AS bz, registers_per_thread AS reg, static_smem_bytes AS smem,
dynamic_smem_bytes AS dmem, NULL AS bytes, NULL AS sk, NULL AS dk, $KPROF_TRACE_LABEL AS device, context, stream,
@kernel AS name
FROM trace_kernel k JOIN trace_name n ON n.id=name_id WHERE end_ns>=start_ns
UNION ALL SELECT start_ns, end_ns-start_ns, correlation, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes,
s.text, t.text, $KPROF_TRACE_LABEL, context, stream, '[CUDA memcpy ' || o.text || ']' FROM trace_copy JOIN trace_name
o ON
o.id=operation_id JOIN trace_name s ON s.id=source_memory_id JOIN trace_name t ON t.id=target_memory_id
WHERE end_ns>=start_ns
UNION ALL SELECT start_ns, end_ns-start_ns, correlation, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes,
m.text, NULL, $KPROF_TRACE_LABEL, context, stream, '[CUDA memset]' FROM trace_set LEFT JOIN trace_name m ON
m.id=memory_id
WHERE end_ns>=start_ns) ORDER BY start_ns

# cuda_api_trace
SELECT start_ns-@start AS "Start (ns)", end_ns-start_ns AS "Duration (ns)", n.text AS "Name", result AS "Result",
correlation AS "CorrID", pid AS "Pid", thread AS "Tid" FROM trace_call JOIN trace_name n ON n.id=name_id JOIN process
p ON p.id=process_id WHERE end_ns>=start_ns ORDER BY start_ns

# cuda_kern_exec_sum
SELECT pid AS "PID", tid AS "TID", device AS "DevId", count(*) AS "Count", sum(q>0) AS "QCount", round(avg(t),
1) AS "TAvg (ns)", kprof_median(t) AS "TMed (ns)", min(t) AS "TMin (ns)", max(t) AS "TMax (ns)",
round(kprof_deviation(t), 1) AS "TStdDev (ns)", round(avg(a), 1) AS "AAvg (ns)", kprof_median(a) AS "AMed (ns)",
min(a) AS "AMin (ns)", max(a) AS "AMax (ns)", round(kprof_deviation(a), 1) AS "AStdDev (ns)", round(avg(w),
1) AS "QAvg (ns)", kprof_median(w) AS "QMed (ns)", min(w) AS "QMin (ns)", max(w) AS "QMax (ns)",
round(kprof_deviation(w), 1) AS "QStdDev (ns)", round(avg(k), 1) AS "KAvg (ns)", kprof_median(k) AS "KMed (ns)",
min(k) AS "KMin (ns)", max(k) AS "KMax (ns)", round(kprof_deviation(k), 1) AS "KStdDev (ns)",
(SELECT text FROM trace_name WHERE id=api) AS "API Name", @shown AS "Kernel Name"
FROM (SELECT *, CASE WHEN q>0 THEN q END AS w FROM ($EXECUTIONS{api.id}{@names}))
GROUP BY process_id, tid, device, api, name ORDER BY total(t) DESC, 27, 26, 1, 2, 3

# cuda_kern_exec_trace
SELECT api_start-@start AS "API Start (ns)", a AS "API Dur (ns)", CASE WHEN q>0 THEN api_end-@start
END AS "Queue Start (ns)", CASE WHEN q>0 THEN q END AS "Queue Dur (ns)", start_ns-@start AS "Kernel Start (ns)",
k AS "Kernel Dur (ns)", t AS "Total Dur (ns)", pid AS "PID", tid AS "TID", device AS "DevId", api AS "API Function",
$GRID AS "GridXYZ", $BLOCK AS "BlockXYZ", name AS "Kernel Name" FROM ($EXECUTIONS{api.text}{trace_name})
ORDER BY api_start

# nvtx_sum
SELECT $TIMES{Instances}, style AS "Style", name AS "Range" FROM ($RANGES)
GROUP BY style, name ORDER BY total(d) DESC, name

# nvtx_pushpop_sum
SELECT $TIMES{Instances}, name AS "Range" FROM ($RANGES) WHERE style='PushPop'
GROUP BY name ORDER BY total(d) DESC, name

# nvtx_startend_sum
SELECT $TIMES{Instances}, name AS "Range" FROM ($RANGES) WHERE style='StartEnd'
GROUP BY name ORDER BY total(d) DESC, name

# nvtx_pushpop_trace
$STACKS{push_tree} SELECT start_ns-@start AS "Start (ns)", end_ns-@start AS "End (ns)",
end_ns-start_ns AS "Duration (ns)", iif(children IS NULL, 0, child_ns) AS "DurChild (ns)",
end_ns-start_ns-iif(children IS NULL, 0, child_ns) AS "DurNonChild (ns)", name AS "Name", pid AS "PID",
thread AS "TID", level AS "Lvl", coalesce(children, 0) AS "NumChild", range AS "RangeId", parent AS "ParentId",
stack AS "RangeStack", dashes || name AS "NameTree" FROM stacks JOIN ($NAMED_RANGES) r USING(range)
LEFT JOIN (SELECT parent AS range, count(*) AS children, iif(count(*)=count(end_ns),
CAST(total(end_ns-start_ns) AS INTEGER), NULL) AS child_ns FROM temp.push_tree JOIN trace_range ON id=range
WHERE parent IS NOT NULL
GROUP BY parent) USING(range) ORDER BY start_ns, 3, level

# kern_line_sum
SELECT $TIMES{Instances}, line AS "Line", @shown AS "Name" FROM (SELECT end_ns-start_ns AS d, @kernel AS name, line
FROM trace_kernel k JOIN @names n ON n.id=name_id $BY_LINE WHERE end_ns>=start_ns)
GROUP BY line, name ORDER BY total(d) DESC, 10

# call_line_sum
SELECT $TIMES{Num Calls}, line AS "Line", name AS "Name" FROM (SELECT end_ns-start_ns AS d, n.text AS name, line
FROM trace_call k JOIN trace_name n ON n.id=name_id $BY_LINE WHERE end_ns>=start_ns) GROUP BY line, name
ORDER BY total(d) DESC, name

# gpu_busy
SELECT $KPROF_TRACE_LABEL_OF_GPU AS "Device", span AS "Span (ns)", round(100*busy/span, 1) AS "Busy (%)",
round(100*kernels/span,
1) AS "Kernels (%)", round(100*(busy-kernels)/span, 1) AS "Copies Alone (%)", round(100*(span-busy)/span,
1) AS "Idle (%)", CASE WHEN memory>0 THEN round(100*(kernels+memory-busy)/memory, 1) END AS "Copies Overlapped (%)",
kernel_count AS "Kernels", latency AS "Launch Latency Med (ns)", round(depth, 1) AS "Queue Depth Avg",
most_depth AS "Queue Depth Max" FROM temp.gpu_busy WHERE span>0 ORDER BY device

# goal_sum
WITH whole AS (SELECT sum(span) AS span, sum(busy) AS busy, sum(memory) AS memory, sum(kernels+memory-busy) AS both
FROM temp.gpu_busy WHERE span>0), found AS (SELECT 1 AS i, 'GPU busy' AS figure, 100*busy/span AS pct,
'at least' AS way, 85 AS goal FROM whole
UNION ALL SELECT 2, 'Copies overlapped with kernels', CASE WHEN memory>0 THEN 100*both/memory END, 'at least', 60
FROM whole
UNION ALL SELECT 3, 'GPU idle, waiting for synchronization', 100*(SELECT total(ns)
FROM temp.gpu_idle WHERE cause='synchronization')/span, 'at most', 10 FROM whole)
SELECT figure AS "Figure", round(pct, 1) AS "Value (%)", way || ' ' || goal AS "Goal (%)", CASE WHEN pct IS NULL THEN
NULL WHEN (way='at least' AND pct>=goal) OR (way='at most' AND pct<=goal) THEN 'yes' ELSE 'no' END AS "Met"
FROM found WHERE EXISTS (SELECT 1 FROM temp.gpu_busy WHERE span>0) ORDER BY i

# gpu_idle_sum
SELECT $KPROF_TRACE_LABEL_OF_GPU AS "Device", round(100*ns/span, 1) AS "Time (%)", CAST(ns AS INTEGER) AS
"Total Time (ns)",
gaps AS "Gaps", CAST(longest_ns AS INTEGER) AS "Max (ns)", cause AS "Cause" FROM temp.gpu_idle JOIN temp.gpu_busy
USING(device) ORDER BY device, ns DESC, cause

# transfer_sum
SELECT CAST(total(ns) AS INTEGER) AS "Total Time (ns)", count(*) AS "Count", round(total(bytes)/1e6,
3) AS "Total (MB)", CASE WHEN total(ns)>0 THEN round(total(bytes)/total(ns), 3) END AS "Throughput (GB/s)",
sum(is_small) AS "Small", sum(coalesce(follows, 0)) AS "Small in a Row", source AS "SrcMemKd", target AS "DstMemKd",
operation AS "Operation" FROM temp.trace_transfer GROUP BY operation, source, target
ORDER BY total(ns) DESC, operation, source, target

# memory_sum
SELECT memory AS "Memory", $KPROF_TRACE_LABEL_OF_GPU AS "Device", round(max(level)/1e6, 3) AS "High Water (MB)",
sum(is_new) AS "Allocations", sum(is_new AND in_loop) AS "In the Loop", sum(NOT is_new) AS "Releases",
CAST(total(call_ns) AS INTEGER) AS "Time in Calls (ns)" FROM temp.trace_allocation LEFT JOIN temp.trace_memory_most
USING(memory, device) GROUP BY memory, device ORDER BY memory, device

# step_sum
SELECT count(*) AS "Instances", kprof_median(ns) AS "Med (ns)", min(ns) AS "Min (ns)", max(ns) AS "Max (ns)", CASE
WHEN avg(ns)>0 THEN round(100*kprof_deviation(ns)/avg(ns), 1) END AS "Spread (%)", CASE WHEN total(known_ns)>0 THEN
round(100*total(busy_ns)/total(known_ns), 1) END AS "GPU Busy (%)", range AS "Range"
FROM temp.trace_step GROUP BY range ORDER BY total(ns) DESC, range

# lost_sum
WITH whole AS (SELECT total(span) AS span, total(busy) AS busy, total(kernels) AS kernels, total(memory) AS memory
FROM temp.gpu_busy), idle AS (SELECT cause, total(ns) AS ns FROM temp.gpu_idle
GROUP BY cause), found AS (SELECT 'GPU idle' AS name, span-busy AS ns, 15 AS goal,
'Kernels and copies leave the GPU idle: see GPU Idle Time by Cause (gpu_idle_sum)' AS advice
FROM whole
UNION ALL SELECT 'Launch-bound', ns, 10,
'Work is shorter than the calls that ask for it: larger kernels and copies, fusion or CUDA graphs' FROM idle
WHERE cause='launching'
UNION ALL SELECT 'Synchronization', ns, 10,
'The host waits for the GPU before it asks for more: wait less often, or later' FROM idle
WHERE cause='synchronization'
UNION ALL SELECT 'Host code', ns, 10, 'The host computes before it asks for more: prepare ahead, in another thread'
FROM idle WHERE cause='host code'
UNION ALL SELECT 'Allocation', ns, 5,
'The host allocates or frees before it asks for more: allocate once, or from a pool'
FROM idle WHERE cause='allocation'
UNION ALL SELECT 'Copies alone', busy-kernels, 10, 'Kernels wait for copies: copy in another stream, ahead of time'
FROM whole
UNION ALL SELECT 'Pageable copies', total(new_ns), 2, 'Copies from and to pageable memory: pin it'
FROM temp.trace_transfer WHERE source='Pageable' OR target='Pageable'
UNION ALL SELECT 'Small copies', min(total(ns+way_ns), (SELECT span FROM whole)), 1,
'Copies of less than 64 KiB follow each other: join them'
FROM temp.trace_transfer WHERE follows
UNION ALL SELECT 'Uneven steps', max(ns), 5,
'Steps (NVTX) differ from their median: find out what the longest ones do, in the timeline' FROM (SELECT
total(max(0, ns-median)) AS ns FROM temp.trace_step JOIN (SELECT range AS of, kprof_median(ns) AS median
FROM temp.trace_step GROUP BY range HAVING count(*)>=5 AND total(ns)>=0.5*(SELECT span FROM whole)) ON of=range
GROUP BY range)) SELECT name AS "Finding", round(100*ns/span, 1) AS "Time (%)",
goal AS "Goal (%)", CAST(ns AS INTEGER) AS "Gain at Most (ns)", advice AS "Advice"
FROM found CROSS JOIN whole WHERE span>0 AND 100*ns/span>goal ORDER BY ns DESC

# kern_counters
SELECT round(100*t/nullif(sum(t) OVER (), 0), 1) AS "Time (%)", CAST(t AS INTEGER) AS "Total Time (ns)",
c AS "Instances", median AS "Med (ns)", coalesce(measured, 0) AS "Counted", ns AS "Counted Med (ns)",
limited AS "Limited by", round(limit_pct, 1) AS "At (%)", finding AS "Worth Most", round(gain_pct*t/nullif(sum(t) OVER
(), 0), 1) AS "Gain of All (%)", $GRID AS "GridXYZ", $BLOCK AS "BlockXYZ", @name AS "Name"
FROM ($SHAPES) s ORDER BY t DESC, 13, 11, 12

# kern_worth
SELECT round(100*t/whole, 1) AS "Time (%)", c AS "Instances", CASE WHEN t>0 THEN round(100*counted/t, 1)
END AS "Counted (%)", f AS "Name" FROM ($WORTH) ORDER BY i

# count_command
SELECT 'kprof --set full -k ' || '''' || replace('regex:^(' || group_concat(kprof_quote(f), '|') || ')$', '''',
'''\''''') || '''' || ' -c 3 --filter-mode per-launch-config -- ' || (SELECT
coalesce(kprof_application(coalesce(source.command_line, run.command_line)), p.command_line) FROM process p JOIN trace
ON trace.process_id=p.id CROSS JOIN run LEFT JOIN process_source s ON s.process_id=p.id LEFT JOIN source ON
source.id=s.source_id ORDER BY p.id LIMIT 1) AS "Command"
FROM (SELECT f FROM ($WORTH) WHERE counted<0.8*t ORDER BY i) HAVING count(*)>0

# nvtx_gpu_proj_sum
SELECT name AS "Range", style AS "Style", CAST(total(p.end_ns-p.start_ns) AS INTEGER) AS "Total Proj Time (ns)",
CAST(total(r.end_ns-r.start_ns) AS INTEGER) AS "Total Range Time (ns)", count(*) AS "Range Instances",
round(avg(p.end_ns-p.start_ns), 1) AS "Proj Avg (ns)", kprof_median(p.end_ns-p.start_ns) AS "Proj Med (ns)",
min(p.end_ns-p.start_ns) AS "Proj Min (ns)", max(p.end_ns-p.start_ns) AS "Proj Max (ns)",
round(kprof_deviation(p.end_ns-p.start_ns), 1) AS "Proj StdDev (ns)", CAST(total(ops) AS INTEGER) AS "Total GPU Ops",
round(avg(ops), 1) AS "Avg GPU Ops", round(avg(level), 1) AS "Avg Range Lvl", round(avg(coalesce(children, 0)),
1) AS "Avg Num Child" FROM temp.range_span p JOIN ($NAMED_RANGES) r USING(range) JOIN temp.range_tree USING(range)
LEFT JOIN ($PROJECTED_CHILDREN) USING(range) GROUP BY 1, 2 ORDER BY 3 DESC, 1

# nvtx_gpu_proj_trace
$STACKS{range_tree} SELECT name AS "Name", p.start_ns-@start AS "Projected Start (ns)",
p.end_ns-p.start_ns AS "Projected Duration (ns)", r.start_ns-@start AS "Orig Start (ns)",
r.end_ns-r.start_ns AS "Orig Duration (ns)", style AS "Style", pid AS "PID", thread AS "TID", ops AS "NumGPUOps",
level AS "Lvl", coalesce(children, 0) AS "NumChild", range AS "RangeId", parent AS "ParentId", stack AS "RangeStack"
FROM temp.range_span p JOIN ($NAMED_RANGES) r USING(range) JOIN stacks USING(range)
LEFT JOIN ($PROJECTED_CHILDREN) USING(range) ORDER BY 2, 3 DESC, level

# nvtx_kern_sum
SELECT coalesce(g.text, '') || ':' || n.text AS "NVTX Range", s.text AS "Style", pid AS "PID", thread AS "TID",
ranges AS "NVTX Inst", kernels AS "Kern Inst", CAST(total AS INTEGER) AS "Total Time (ns)", round(average,
1) AS "Avg (ns)", median AS "Med (ns)", least AS "Min (ns)", most AS "Max (ns)", round(deviation,
1) AS "StdDev (ns)", kn.@name AS "Kernel Name" FROM temp.range_kernel_@name JOIN trace_name n ON n.id=name_id JOIN
trace_name s ON s.id=style_id LEFT JOIN trace_name g ON g.id=domain_id JOIN trace_name kn ON kn.id=kernel_name_id JOIN
process p ON p.id=process_id ORDER BY 7 DESC, 1, kn.@name

# pm_sampling_sum
SELECT pid AS "PID", $KPROF_TRACE_LABEL AS "Device", label AS "Metric", unit AS "Unit",
round(total(value*(1.0*(end_ns-start_ns)))/nullif(total(CASE WHEN value IS NOT NULL THEN 1.0*(end_ns-start_ns) END),
0), 3) AS "Mean", round(min(value), 3) AS "Min", round(max(value), 3) AS "Max", count(*) AS "Samples",
max(end_ns-start_ns) AS "Interval Max (ns)", coalesce(sum(start_ns>before AND NOT coalesce((SELECT o.start_ns
FROM temp.time_left_out o WHERE o.process_id=s.process_id AND o.end_ns>before
ORDER BY o.end_ns LIMIT 1)<start_ns, 0)), 0) AS "Gaps", kprof_line(start_ns, end_ns, value, first,
last) AS "Over Time" FROM (SELECT *, lag(end_ns) OVER (PARTITION BY process_id, device, name_id
ORDER BY start_ns) AS before FROM temp.trace_sampled) s JOIN temp.sampled_metric USING(name_id) JOIN
(SELECT process_id, device, min(start_ns) AS first, max(end_ns) AS last FROM temp.trace_sampled
GROUP BY process_id, device) USING(process_id, device) JOIN process p ON p.id=process_id
GROUP BY process_id, device, name_id

# pm_sampling_steps
SELECT range AS "Range", count(DISTINCT id) AS "Instances", kprof_median(ns) AS "Med (ns)", device AS "Device"@sampled
FROM temp.sampled_step GROUP BY range, device ORDER BY sum(total(ns)) OVER (PARTITION BY range) DESC, range, device

# pm_sampling_step_spread
SELECT range AS "Range", count(*) AS "Instances", device AS "Device", label AS "Metric", unit AS "Unit",
round(avg(mean), 3) AS "Mean", round(min(mean), 3) AS "Min", round(max(mean), 3) AS "Max",
round(kprof_deviation(mean), 3) AS "StdDev" FROM temp.sampled_step JOIN temp.sampled_metric USING(name_id)
GROUP BY range, device, name_id ORDER BY sum(total(ns)) OVER (PARTITION BY range) DESC, range, device, name_id

# pm_sampling_trace
SELECT start_ns-@start AS "Start (ns)", end_ns-start_ns AS "Duration (ns)", pid AS "PID", $KPROF_TRACE_LABEL AS
"Device",
m.name AS "Name", label AS "Metric", round(value, 6) AS "Value", unit AS "Unit" FROM temp.trace_sampled JOIN
temp.sampled_metric m USING(name_id) JOIN process p ON p.id=process_id ORDER BY start_ns, process_id, device, name_id

# um_sum
SELECT printf('0x%x', address) AS "Virtual Address", round(total(to_device)/1e6, 3) AS "HtoD Migration Size (MB)",
round(total(to_host)/1e6, 3) AS "DtoH Migration Size (MB)", CAST(total(cpu) AS INTEGER) AS "CPU Page Faults",
CAST(total(gpu) AS INTEGER) AS "GPU PageFaults", CASE WHEN total(ns)>0 THEN
round(1e3*(total(to_device)+total(to_host))/total(ns), 3) END AS "Migration Throughput (MB/s)"
FROM ($MANAGED) GROUP BY address ORDER BY total(to_device)+total(to_host) DESC, address

# um_total_sum
SELECT round(total(to_device)/1e6, 3) AS "Total HtoD Migration Size (MB)", round(total(to_host)/1e6,
3) AS "Total DtoH Migration Size (MB)", CAST(total(cpu) AS INTEGER) AS "Total CPU Page Faults",
CAST(total(gpu) AS INTEGER) AS "Total GPU PageFaults", printf('0x%x', min(address)) AS "Minimum Virtual Address",
printf('0x%x', max(address)) AS "Maximum Virtual Address" FROM ($MANAGED) HAVING count(*)>0

# um_cpu_page_faults_sum
SELECT count(*) AS "CPU Page Faults", printf('0x%x', instruction) AS "CPU Instruction Address"
FROM trace_managed WHERE instruction IS NOT NULL GROUP BY instruction ORDER BY 1 DESC, instruction
