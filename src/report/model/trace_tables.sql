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
