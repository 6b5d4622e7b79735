-- SQL of trace_tables.c; cmake/sql.cmake tells how texts stand for others.

-- They are those of the whole trace: work in a part of it may have been asked for before.
# CALLS
CREATE TEMP TABLE first_call(process_id INTEGER, correlation INTEGER, start_ns INTEGER, end_ns INTEGER, thread
INTEGER, name_id INTEGER, PRIMARY KEY(process_id, correlation)) WITHOUT ROWID;
INSERT INTO temp.first_call SELECT process_id, correlation, start_ns, end_ns, thread, name_id
FROM main.trace_call WHERE end_ns>=start_ns ON CONFLICT DO UPDATE SET start_ns=excluded.start_ns,
end_ns=excluded.end_ns,
thread=excluded.thread, name_id=excluded.name_id WHERE excluded.start_ns<start_ns

-- What processes see, and the numbers of GPUs that they used without a row: of an older report that was merged, nobody
-- knows which of several GPUs has a number.
# SEEN_GPUS
SELECT process_id, ordinal, uuid, device_id FROM process_device JOIN device ON device.id=device_id
UNION ALL SELECT process_id, device, '', NULL FROM (SELECT process_id, device FROM main.trace_kernel
UNION SELECT process_id, device FROM main.trace_graph
UNION SELECT process_id, device FROM main.trace_copy
UNION SELECT process_id, device FROM main.trace_set
UNION SELECT process_id, device FROM main.trace_memory
UNION SELECT process_id, device FROM main.trace_sample) WHERE (process_id, device) NOT IN
(SELECT process_id, ordinal FROM process_device JOIN device ON device.id=device_id)

-- A report of an older version tells what processes see where one GPU alone has a number.
# GUESSED_GPUS
SELECT process.id, ordinal, iif(count(*)=1, uuid, ''), iif(count(*)=1, device.id, NULL)
FROM process CROSS JOIN device GROUP BY process.id, ordinal

-- A GPU is told by host and UUID; without a UUID it is another one in each report that was merged.
# GPUS(seen)
CREATE TEMP TABLE trace_gpu(process INTEGER, ordinal INTEGER, gpu INTEGER, label, device_id INTEGER,
PRIMARY KEY(process, ordinal)) WITHOUT ROWID;
INSERT OR IGNORE INTO temp.trace_gpu WITH seen(process, ordinal, uuid, device_id) AS ($seen), keyed AS (SELECT process,
ordinal, device_id, host, iif(trim(uuid, '0')='', coalesce(source_id, 0) || ' ' || ordinal, uuid) AS k
FROM seen JOIN trace ON trace.process_id=process JOIN process p ON p.id=process
LEFT JOIN process_source s ON s.process_id=process), gpus AS (SELECT host, k, min(ordinal) AS first, dense_rank() OVER
(ORDER BY host, min(ordinal), k)-1 AS gpu, count(*) OVER (PARTITION BY host, min(ordinal)) AS alike
FROM keyed GROUP BY host, k), mixed AS (SELECT max(n)>1 AS are_mixed
FROM (SELECT count(DISTINCT host || ' ' || k) AS n FROM keyed GROUP BY ordinal)) SELECT process, ordinal,
iif(are_mixed, gpu, ordinal), iif(are_mixed, host || ':' || first || iif(alike>1, ', ' || substr(k, 1, 8), ''),
ordinal), device_id FROM keyed JOIN gpus USING(host, k) CROSS JOIN mixed

-- Each allocation and release, with the id of what was allocated at its address before.
# MEMORY_MOVES
moves AS (SELECT m.id, process_id, device, memory_id, bytes, time_ns, correlation, o.text='allocation' AS is_new,
lag(iif(o.text='allocation', m.id, NULL)) OVER (PARTITION BY process_id, address ORDER BY time_ns, m.id) AS before
FROM trace_memory m JOIN trace_name o ON o.id=operation_id)

-- The bytes that are allocated from a time on. A release without an allocation changes nothing. What was at the address
-- of an allocation before is gone, though no release of it was recorded.
# LEVELS
CREATE TEMP VIEW memory_level AS WITH $MEMORY_MOVES, changes AS (SELECT id, process_id, device, memory_id, time_ns,
1.0*bytes AS more FROM moves WHERE is_new
UNION ALL SELECT m.id, b.process_id, b.device, b.memory_id, m.time_ns, -1.0*b.bytes FROM moves m JOIN trace_memory b
ON b.id=before) SELECT process_id, device, memory_id, time_ns, sum(more) OVER (PARTITION BY process_id, device,
memory_id ORDER BY time_ns, id, more ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS level FROM changes;
CREATE TEMP VIEW memory_move AS WITH $MEMORY_MOVES SELECT m.process_id, coalesce(b.device, m.device) AS device,
coalesce(b.memory_id, m.memory_id) AS memory_id, is_new, m.time_ns, m.correlation FROM moves m LEFT JOIN trace_memory b
ON b.id=before AND NOT is_new

# SHAPE_COLUMNS
grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_smem_bytes

# SHAPES
CREATE TEMP TABLE trace_shape AS SELECT name_id, $SHAPE_COLUMNS, count(*) AS c, total(end_ns-start_ns) AS t,
kprof_median(end_ns-start_ns) AS median FROM trace_kernel WHERE end_ns>=start_ns
GROUP BY name_id, $SHAPE_COLUMNS

# NAMES
CREATE TEMP TABLE name_key(id INTEGER PRIMARY KEY, text INTEGER, demangled INTEGER, function INTEGER);
INSERT INTO temp.name_key SELECT id, id, min(id) OVER (PARTITION BY demangled), min(id) OVER (PARTITION BY function)
FROM trace_name

-- name_id, name, label, unit, and the factor from millionths to that unit: what the sections of the plans say, the
-- first that has the metric.
# SAMPLED_METRICS
CREATE TEMP TABLE sampled_metric AS WITH item AS (SELECT json_extract(value, '$.metric') AS name, json_extract(value,
'$.label') AS label, coalesce(json_extract(value, '$.unit'), '') AS unit FROM section, json_each(definition,
'$.timeline')), named AS (SELECT id AS name_id, text AS name, coalesce((SELECT label
FROM item WHERE item.name=text LIMIT 1), text) AS label, coalesce((SELECT unit FROM item
WHERE item.name=text LIMIT 1), '') AS unit FROM trace_name WHERE id IN (SELECT name_id
FROM trace_sample)) SELECT name_id, name, label, CASE unit WHEN 'byte/second' THEN 'GB/s' ELSE unit END AS unit, CASE
unit WHEN 'byte/second' THEN 1e-15 ELSE 1e-6 END AS factor FROM named

-- Samples that follow each other, for each process, device and metric; `value` NULL: not known.
# SAMPLES
CREATE TEMP TABLE trace_sampled(process_id INTEGER, device INTEGER, name_id INTEGER, start_ns INTEGER, end_ns INTEGER,
value REAL, PRIMARY KEY(process_id, device, name_id, start_ns)) WITHOUT ROWID;
INSERT OR IGNORE INTO temp.trace_sampled SELECT process_id, device, name_id, start_ns, end_ns, value_millionths*factor
FROM (SELECT *, max(end_ns) OVER (PARTITION BY process_id, device, name_id
ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
FROM trace_sample WHERE end_ns>start_ns) JOIN temp.sampled_metric USING(name_id)
WHERE start_ns>=coalesce(before, start_ns)

-- A row for each NVTX range that is as long as a sample and each metric of its process: the instance, its length,
-- and the mean of the samples in it.
# STEPS
CREATE TEMP VIEW sampled_step AS WITH step AS (SELECT r.id, process_id, r.start_ns AS a, r.end_ns AS b,
coalesce(g.text, '') || ':' || n.text AS range FROM main.trace_range r JOIN main.trace_name n ON n.id=name_id
LEFT JOIN main.trace_name g ON g.id=domain_id WHERE r.end_ns-r.start_ns>=(SELECT min(end_ns-start_ns)
FROM temp.trace_sampled)), series AS (SELECT DISTINCT process_id, device, name_id
FROM temp.trace_sampled) SELECT range, step.id, b-a AS ns, coalesce((SELECT g.label
FROM temp.trace_gpu g WHERE process=k.process_id AND ordinal=k.device), k.device) AS device, k.name_id,
$KPROF_MEAN_OF_SAMPLES{1.0*(min(b,
end_ns)-max(a, start_ns))} AS mean FROM step CROSS JOIN series k USING(process_id) CROSS JOIN temp.trace_sampled s ON
s.process_id=k.process_id AND s.device=k.device AND s.name_id=k.name_id AND start_ns>=coalesce((SELECT max(start_ns)
FROM temp.trace_sampled t WHERE t.process_id=k.process_id AND t.device=k.device AND t.name_id=k.name_id AND
t.start_ns<=a), a) AND start_ns<b AND end_ns>a GROUP BY step.id, k.device, k.name_id

-- Times that the trace was not to have: a gap there lacks nothing.
# TIMES_LEFT_OUT
CREATE TEMP TABLE time_left_out(process_id INTEGER, end_ns INTEGER, start_ns INTEGER, PRIMARY KEY(process_id, end_ns))
WITHOUT ROWID;
INSERT OR IGNORE INTO temp.time_left_out SELECT process_id, end_ns, start_ns FROM trace_overhead JOIN trace_name n ON
n.id=name_id WHERE text='$KPROF_TRACE_LEFT_OUT' AND end_ns>=start_ns

-- An older report has no table of samples.
# NO_SAMPLES
CREATE TEMP TABLE sampled_metric(name_id, name, label, unit, factor);
CREATE TEMP TABLE trace_sampled(process_id, device, name_id, start_ns, end_ns, value)

# METRICS_SHOWN
SELECT name_id, label, unit FROM temp.sampled_metric ORDER BY name_id LIMIT 20
