-- SQL of trace_tables.c; cmake/sql.cmake tells how texts stand for others.

-- They are those of the whole trace: work in a part of it may have been asked for before.
# CALLS
CREATE TEMP TABLE first_call(process_id INTEGER, correlation INTEGER, start_ns INTEGER, end_ns INTEGER, thread
INTEGER, name_id INTEGER, PRIMARY KEY(process_id, correlation)) WITHOUT ROWID;
INSERT INTO temp.first_call SELECT process_id, correlation, start_ns, end_ns, thread, name_id
FROM main.trace_call WHERE true ON CONFLICT DO UPDATE SET start_ns=excluded.start_ns, end_ns=excluded.end_ns,
thread=excluded.thread, name_id=excluded.name_id WHERE excluded.start_ns<start_ns

# SHAPE_COLUMNS
grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_smem_bytes

# SHAPES
CREATE TEMP TABLE trace_shape AS SELECT name_id, $SHAPE_COLUMNS, count(*) AS c, total(end_ns-start_ns) AS t,
kprof_median(end_ns-start_ns) AS median FROM trace_kernel WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL
GROUP BY name_id, $SHAPE_COLUMNS

# NAMES
CREATE TEMP TABLE name_key(id INTEGER PRIMARY KEY, text INTEGER, demangled INTEGER, function INTEGER);
INSERT INTO temp.name_key SELECT id, id, min(id) OVER (PARTITION BY demangled), min(id) OVER (PARTITION BY function)
FROM trace_name
