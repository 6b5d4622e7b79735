-- SQL of chrome.c; cmake/sql.cmake tells how texts stand for others.

-- A process of the application has the number of its row times 1000, and each GPU that it uses its own behind
-- that.
# HOST
1000*process_id

# GPU
1000*process_id+1+device

# STREAM
65536*context+stream

# LANES
temp.work_lane

# TIME(ns)
json(printf('%.3f', ($ns-@start)/1e3))

# LENGTH
json(printf('%.3f', (end_ns-start_ns)/1e3))

# SLICE(category, name, pid, tid)
SELECT json_object('ph', 'X', 'cat', $category, 'name', $name, 'pid', $pid, 'tid', $tid, 'ts', $TIME{start_ns}, 'dur',
$LENGTH, 'args', json_object(

# NAMED(what, pid, tid, name)
json_object('ph', 'M', 'name', '$what', 'pid', $pid, 'tid', $tid, 'args', json_object('name', $name))

# KNOWN
WHERE end_ns>=start_ns

# ON_GPU
'device', device, 'context', context, 'stream', stream, 'correlation', correlation, 'graph node id',
coalesce(graph_node, 0)

-- The work that calls asked for; `what` as in temp.work_lane.
# WORK
work AS (SELECT 1 AS what, id, process_id, correlation, device, context, stream, start_ns
FROM trace_kernel $KNOWN
UNION ALL SELECT 2, id, process_id, correlation, device, context, stream, start_ns
FROM trace_copy $KNOWN
UNION ALL SELECT 3, id, process_id, correlation, device, context, stream, start_ns
FROM trace_set $KNOWN
UNION ALL SELECT 4, id, process_id, correlation, device, context, stream, start_ns
FROM trace_graph $KNOWN)

# STREAMS
, used AS (SELECT DISTINCT process_id, device, context, stream FROM work)

# FLOW(phase, pid, tid)
json_object('ph', '$phase', 'cat', 'ac2g', 'name', 'ac2g', 'id', 4294967296*process_id+correlation, 'pid', $pid,
'tid', $tid, 'ts', $TIME{start_ns}

-- Ranges on the GPU: from the first start to the last end of what their calls asked for. They are beside the streams of
-- the GPU, or of a process that uses several of them beside its threads.
# PROJECTED(phase, ns)
WITH $WORK, place AS MATERIALIZED (SELECT process_id AS process, iif(min(device)=max(device), 1+min(device), 0) AS gpu
FROM work GROUP BY process_id)
SELECT json_object('ph', '$phase', 'cat', 'gpu_user_annotation', 'name', coalesce(g.text || ':', '') || n.text, 'id',
r.id, 'pid', $HOST+gpu, 'tid', iif(gpu, 0, thread), 'ts', $TIME{$ns}) FROM temp.range_span p JOIN trace_range r ON
r.id=p.range JOIN place ON process=process_id JOIN trace_name n ON n.id=name_id
LEFT JOIN trace_name g ON g.id=domain_id

-- Ranges that are started need not nest, nor do those of several domains, or without an end, which viewers draw to
-- the end of the trace.
# CROSSES
EXISTS (SELECT 1 FROM $LANES l WHERE l.what=5 AND l.id=r.id)

# RANGE_END(phase, ns, tid, of)
SELECT json_object('ph', '$phase', 'cat', 'user_annotation', 'name', coalesce(g.text || ':', '') || n.text, 'id',
r.id, 'pid', $HOST, 'tid', $tid, 'ts', $TIME{$ns}) FROM trace_range r JOIN trace_name n ON n.id=name_id JOIN
trace_name s ON s.id=style_id LEFT JOIN trace_name g ON g.id=domain_id WHERE $of

-- Overheads need not nest with calls, either: the page lays them out, and others are told their ends.
# OVERHEAD
'overhead'

# OVERHEAD_END(phase, ns)
SELECT json_object('ph', '$phase', 'cat', $OVERHEAD, 'name', n.text, 'id', o.id, 'pid', $HOST, 'tid', coalesce(thread,
0), 'ts', $TIME{$ns}) FROM trace_overhead o JOIN trace_name n ON n.id=name_id $KNOWN

-- Samples for the page: begin and length in us and the value of each; above MOST_POINTS of a metric, means of
-- them.
# SERIES
WITH part AS (SELECT *, row_number() OVER same-1 AS i, count(*) OVER (PARTITION BY process_id, device, name_id) AS n
FROM temp.trace_sampled WINDOW same AS (PARTITION BY process_id, device, name_id
ORDER BY start_ns)), point AS (SELECT process_id, device, name_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
total(value*(end_ns-start_ns))/nullif(total(CASE WHEN value IS NOT NULL THEN end_ns-start_ns END), 0) AS value
FROM part GROUP BY process_id, device, name_id, i/((n+$MOST_POINTS-1)/$MOST_POINTS))
SELECT json_object('ph', 'samples', 'name', label, 'unit', unit, 'pid', $GPU, 'points',
json_group_array(json_array($TIME{start_ns}, $LENGTH, round(value, 3)))) FROM (SELECT *
FROM point ORDER BY process_id, device, name_id, start_ns) JOIN temp.sampled_metric USING(name_id)
GROUP BY process_id, device, name_id

# MOST_POINTS
20000

-- Managed memory has rows of its own, below the streams of its GPU: what moves there, what moves away, and the
-- rest.
# MANAGED_GPU
1000*process_id+1+coalesce(target_device, source_device, 0)

# MANAGED_ROW
2147483640+CASE o.text WHEN 'Host-to-Device' THEN 1 WHEN 'Device-to-Host' THEN 2 ELSE 3 END

# MANAGED_FROM
FROM trace_managed JOIN trace_name o ON o.id=operation_id WHERE

# MANAGED_NAMES
SELECT DISTINCT $NAMED{thread_name}{$MANAGED_GPU}{$MANAGED_ROW}{'managed memory, ' || CASE o.text WHEN
'Host-to-Device' THEN 'to the GPU' WHEN 'Device-to-Host' THEN 'to the host' ELSE 'faults' END} $MANAGED_FROM
coalesce(end_ns>=start_ns, 1) ORDER BY 1

# MANAGED_GPU_NAMES
WITH used AS (SELECT DISTINCT process_id, coalesce(target_device, source_device, 0) AS device FROM trace_managed)
$NAMED_GPUS

# MANAGED
$SLICE{'managed'}{o.text}{$MANAGED_GPU}{$MANAGED_ROW}'address', printf('0x%x', address), 'bytes', bytes, 'faults',
faults)) $MANAGED_FROM end_ns>=start_ns

# MARK(category, name, pid, tid)
SELECT json_object('ph', 'i', 's', 't', 'cat', $category, 'name', $name, 'pid', $pid, 'tid', $tid, 'ts',
$TIME{start_ns}, 'args', json_object(

-- Page faults of the host, and the like, which have no end.
# MANAGED_MARKS
$MARK{'managed'}{o.text}{$MANAGED_GPU}{$MANAGED_ROW}'address', printf('0x%x', address))) $MANAGED_FROM end_ns IS NULL

-- The page has them as slices without a length.
# MANAGED_ON_PAGE
$SLICE{'managed'}{o.text}{$MANAGED_GPU}{$MANAGED_ROW}'address', printf('0x%x', address), 'bytes', bytes, 'faults',
faults)) FROM (SELECT process_id, start_ns, coalesce(end_ns, start_ns) AS end_ns, operation_id, address, bytes, faults,
source_device, target_device FROM trace_managed) JOIN trace_name o ON o.id=operation_id $KNOWN

# HOST_NAMES
SELECT $NAMED{process_name}{$HOST}{0}{name || ' (' || pid || ' on ' || host || ')'}
FROM trace JOIN process ON process.id=process_id ORDER BY process_id

# NAMED_GPUS
SELECT DISTINCT $NAMED{process_name}{$GPU}{0}{'GPU ' || $KPROF_TRACE_LABEL || coalesce(' (' || (SELECT name
FROM temp.trace_gpu g JOIN device d ON d.id=device_id WHERE process=process_id AND g.ordinal=used.device) || ')',
'') || ', of process ' || (SELECT pid FROM process WHERE id=process_id)} FROM used ORDER BY 1

# GPU_NAMES
WITH $WORK, used AS (SELECT process_id, device FROM work
UNION SELECT process_id, device FROM trace_memory
UNION SELECT process_id, device FROM temp.trace_sampled) $NAMED_GPUS

# STREAM_NAMES
WITH $WORK$STREAMS SELECT $NAMED{thread_name}{$GPU}{$STREAM}{'stream ' || stream || ' (context ' || context || ')'}
FROM used ORDER BY 1

# LANE_NAMES
WITH $WORK, used AS (SELECT DISTINCT process_id, device, context, stream, tid FROM work JOIN $LANES USING(what, id))
SELECT $NAMED{thread_name}{$GPU}{tid}{'stream ' || stream || ' (context ' || context || '), beside the row before'}
FROM used ORDER BY 1

# THREAD_NAMES
SELECT DISTINCT $NAMED{thread_name}{$HOST}{thread}{'thread ' || thread} FROM (SELECT process_id, thread
FROM trace_call
UNION SELECT process_id, thread FROM trace_range) ORDER BY 1

# KERNELS
$SLICE{'kernel'}{n.demangled}{$GPU}{@kernel}$ON_GPU, 'grid', json_array(grid_x, grid_y, grid_z), 'block',
json_array(block_x, block_y, block_z), 'registers per thread', registers_per_thread, 'shared memory',
static_smem_bytes+dynamic_smem_bytes)) FROM trace_kernel JOIN trace_name n ON n.id=name_id $KNOWN

# COPIES
$SLICE{'gpu_memcpy'}{'Memcpy ' || o.text}{$GPU}{@copy}$ON_GPU, 'bytes', bytes, 'memory bandwidth (GB/s)', CASE WHEN
end_ns>start_ns THEN round(1.0*bytes/(end_ns-start_ns), 3) END, 'source', s.text, 'target', t.text))
FROM trace_copy JOIN trace_name o ON o.id=operation_id JOIN trace_name s ON s.id=source_memory_id JOIN trace_name t ON
t.id=target_memory_id $KNOWN

# SETS
$SLICE{'gpu_memset'}{'Memset'}{$GPU}{@set}$ON_GPU, 'bytes', bytes)) FROM trace_set $KNOWN

# GRAPHS
$SLICE{'kernel'}{'CUDA graph ' || graph}{$GPU}{@graph}'graph', graph, 'correlation', correlation))
FROM trace_graph $KNOWN

-- Viewers take slices that begin at one time in the order of the file: ranges have calls in them.
# RANGES
$SLICE{'user_annotation'}{coalesce(g.text || ':', '') || n.text}{$HOST}{thread}'style', s.text))
FROM trace_range r JOIN trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id
LEFT JOIN trace_name g ON g.id=domain_id WHERE end_ns>=start_ns AND s.text!='StartEnd'@nested

-- The page lays out any ranges; those without an end go on to the end of the trace, and a mark has no length.
# RANGES_ON_PAGE
$SLICE{'user_annotation'}{coalesce(g.text || ':', '') || n.text}{$HOST}{thread}'style', style || iif(goes_on,
', not ended', ''))) FROM (SELECT process_id, thread, name_id, domain_id, start_ns, s.text AS style, end_ns IS NULL AND
s.text!='Marker' AS goes_on, coalesce(end_ns, iif(s.text='Marker', start_ns, max(start_ns, ($LAST_END)))) AS end_ns
FROM trace_range JOIN trace_name s ON s.id=style_id) JOIN trace_name n ON n.id=name_id
LEFT JOIN trace_name g ON g.id=domain_id $KNOWN

# LAST_END
SELECT max(e) FROM (SELECT max(end_ns) AS e FROM trace_kernel
UNION ALL SELECT max(end_ns) FROM trace_copy
UNION ALL SELECT max(end_ns) FROM trace_call
UNION ALL SELECT max(end_ns) FROM trace_range)

# CALLS
$SLICE{'cuda_' || l.text}{n.text}{$HOST}{thread}'correlation', correlation, 'result', result@caller))
FROM trace_call JOIN trace_name n ON n.id=name_id JOIN trace_name l ON l.id=layer_id $KNOWN

# MARKERS
$MARK{'user_annotation'}{coalesce(g.text || ':', '') || n.text}{$HOST}{thread})) FROM trace_range JOIN trace_name n ON
n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN trace_name g ON g.id=domain_id
WHERE s.text='Marker'

# RANGE_BEGINS
$RANGE_END{b}{start_ns}{thread}{(s.text='StartEnd' AND coalesce(end_ns>=start_ns, 1)) OR (end_ns IS
NULL AND s.text!='Marker') OR $CROSSES}

# RANGE_ENDS
$RANGE_END{e}{end_ns}{end_thread}{(s.text='StartEnd' AND end_ns>=start_ns) OR $CROSSES}

# PROJECTION_BEGINS
$PROJECTED{b}{p.start_ns}

# PROJECTION_ENDS
$PROJECTED{e}{p.end_ns}

# OVERHEADS
$SLICE{$OVERHEAD}{n.text}{$HOST}{coalesce(thread, 0)}'correlation', correlation))
FROM trace_overhead JOIN trace_name n ON n.id=name_id $KNOWN

# OVERHEAD_BEGINS
$OVERHEAD_END{b}{start_ns}

# OVERHEAD_ENDS
$OVERHEAD_END{e}{end_ns}

# FLOW_BEGINS
WITH $WORK, asked AS (SELECT DISTINCT process_id, correlation FROM work) SELECT $FLOW{s}{$HOST}{thread})
FROM asked CROSS JOIN temp.first_call USING(process_id, correlation)

# FLOW_ENDS
WITH $WORK SELECT $FLOW{f}{$GPU}{@work}, 'bp', 'e') FROM work WHERE EXISTS (SELECT 1
FROM temp.first_call c WHERE c.process_id=work.process_id AND c.correlation=work.correlation)

# MEMORY
SELECT json_object('ph', 'C', 'name', 'allocated ' || n.text || ' memory', 'pid', $GPU, 'tid', 0, 'ts',
$TIME{time_ns}, 'args', json_object('MB', round(level/1e6, 3))) FROM temp.memory_level JOIN trace_name n ON
n.id=memory_id

# QUEUE_DEPTH
WITH $WORK, steps AS (SELECT process_id, device, c.start_ns AS start_ns, 1 AS d FROM work CROSS JOIN temp.first_call c
USING(process_id, correlation)
UNION ALL SELECT process_id, device, work.start_ns, -1 FROM work CROSS JOIN temp.first_call USING(process_id,
correlation)) SELECT json_object('ph', 'C', 'name', 'queue depth', 'pid', $GPU, 'tid', 0, 'ts', $TIME{start_ns},
'args', json_object('asked for', sum(d) OVER (PARTITION BY process_id, device
ORDER BY start_ns, d ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))) FROM steps

-- Names are in the order in which the plan has the metrics.
# SAMPLES
SELECT json_object('ph', 'C', 'name', label, 'pid', $GPU, 'tid', 0, 'ts', $TIME{start_ns}, 'args',
json_object(coalesce(nullif(unit, ''), 'value'), round(value, 3))) FROM temp.trace_sampled JOIN temp.sampled_metric
USING(name_id) WHERE value IS NOT NULL ORDER BY process_id, device, name_id, start_ns

-- The row of something: a stream's, but for what overlaps there.
# IN_LANE(what, id)
coalesce((SELECT tid FROM $LANES l WHERE l.what=$what AND l.id=$id), $STREAM)
