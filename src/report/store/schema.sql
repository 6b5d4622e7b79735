-- SQL of schema.c; cmake/sql.cmake tells how texts stand for others.

-- SQLite keeps the text of these statements in the file, so that a report can be compared with them word for word.
# RUN
CREATE TABLE run(id INTEGER PRIMARY KEY, command_line TEXT NOT NULL, working_directory TEXT NOT NULL, kprof_version
TEXT NOT NULL, sets TEXT NOT NULL, start_unix_ns INTEGER NOT NULL)

# SECTION
CREATE TABLE section(id INTEGER PRIMARY KEY, chip TEXT NOT NULL, identifier TEXT NOT NULL, name TEXT NOT NULL,
definition TEXT NOT NULL)

# VALUE
CREATE TABLE value(launch_id INTEGER NOT NULL REFERENCES launch, metric_id INTEGER NOT NULL REFERENCES metric, value
REAL, PRIMARY KEY(launch_id, metric_id)) WITHOUT ROWID

# SEEN
CREATE TABLE seen(process_id INTEGER NOT NULL REFERENCES process, kernel_id INTEGER NOT NULL REFERENCES kernel,
launches INTEGER NOT NULL, PRIMARY KEY(process_id, kernel_id)) WITHOUT ROWID

# PASS
CREATE TABLE pass(chip TEXT NOT NULL, pass INTEGER NOT NULL, counters INTEGER NOT NULL, sm_side INTEGER NOT NULL,
PRIMARY KEY(chip, pass)) WITHOUT ROWID

# SCHEDULE
CREATE TABLE schedule(chip TEXT NOT NULL, metric_id INTEGER NOT NULL REFERENCES metric, pass INTEGER NOT NULL, PRIMARY
KEY(chip, metric_id, pass)) WITHOUT ROWID

# GRAPH_NODE
CREATE TABLE graph_node(launch_id INTEGER PRIMARY KEY REFERENCES launch, node INTEGER NOT NULL)

# NVTX
CREATE TABLE nvtx(launch_id INTEGER PRIMARY KEY REFERENCES launch, ranges TEXT NOT NULL)

# STACK
CREATE TABLE stack(id INTEGER PRIMARY KEY, line TEXT NOT NULL, module TEXT NOT NULL, frames TEXT NOT NULL, cut INTEGER
NOT NULL, reason TEXT NOT NULL, UNIQUE(frames, cut, reason))

# LAUNCH_STACK
CREATE TABLE launch_stack(launch_id INTEGER PRIMARY KEY REFERENCES launch, stack_id INTEGER NOT NULL REFERENCES stack,
origin TEXT NOT NULL)

# SOURCE
CREATE TABLE source(id INTEGER PRIMARY KEY, name TEXT NOT NULL, command_line TEXT NOT NULL, working_directory TEXT NOT
NULL, kprof_version TEXT NOT NULL, sets TEXT NOT NULL, start_unix_ns INTEGER NOT NULL)

# PROCESS_SOURCE
CREATE TABLE process_source(process_id INTEGER PRIMARY KEY REFERENCES process, source_id INTEGER NOT NULL REFERENCES
source)

# PROCESS_DEVICE
CREATE TABLE process_device(process_id INTEGER NOT NULL REFERENCES process, device_id INTEGER NOT NULL REFERENCES
device, PRIMARY KEY(process_id, device_id)) WITHOUT ROWID

# CODE
CREATE TABLE code(id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes INTEGER NOT NULL, text_state TEXT NOT NULL,
line_state TEXT NOT NULL, cubin BLOB)

# CODE_FUNCTION
CREATE TABLE code_function(id INTEGER PRIMARY KEY, code_id INTEGER NOT NULL REFERENCES code, mangled TEXT NOT NULL,
demangled TEXT NOT NULL, bytes INTEGER NOT NULL, UNIQUE(code_id, mangled))

# CODE_FILE
CREATE TABLE code_file(id INTEGER PRIMARY KEY, path TEXT NOT NULL, bytes INTEGER, hash TEXT, content TEXT)

# CODE_INSTRUCTION
CREATE TABLE code_instruction(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, text
TEXT, space TEXT, operation TEXT, access_bits INTEGER, PRIMARY KEY(function_id, offset)) WITHOUT ROWID

# CODE_LINE
CREATE TABLE code_line(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, depth INTEGER
NOT NULL, file_id INTEGER NOT NULL REFERENCES code_file, line INTEGER NOT NULL, function TEXT, PRIMARY
KEY(function_id, offset, depth)) WITHOUT ROWID

# CODE_PTX
CREATE TABLE code_ptx(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, file_id INTEGER
NOT NULL REFERENCES code_file, line INTEGER NOT NULL, PRIMARY KEY(function_id, offset)) WITHOUT ROWID

# CODE_WAIT
CREATE TABLE code_wait(function_id INTEGER NOT NULL REFERENCES code_function, offset INTEGER NOT NULL, producer_offset
INTEGER NOT NULL, PRIMARY KEY(function_id, offset, producer_offset)) WITHOUT ROWID

# CODE_PROFILE
CREATE TABLE code_profile(id INTEGER PRIMARY KEY, process_id INTEGER NOT NULL REFERENCES process, kernel_id INTEGER
NOT NULL REFERENCES kernel, device_id INTEGER NOT NULL REFERENCES device, launch_id INTEGER NOT NULL REFERENCES
launch, counted INTEGER NOT NULL, sampled INTEGER NOT NULL, period_cycles INTEGER NOT NULL, dropped INTEGER NOT NULL,
reason TEXT NOT NULL)

# LAUNCH_CODE_PROFILE
CREATE TABLE launch_code_profile(launch_id INTEGER PRIMARY KEY REFERENCES launch, profile_id INTEGER NOT NULL
REFERENCES code_profile)

# CODE_PROFILE_METRIC
CREATE TABLE code_profile_metric(profile_id INTEGER NOT NULL REFERENCES code_profile, metric_id INTEGER NOT NULL
REFERENCES metric, PRIMARY KEY(profile_id, metric_id)) WITHOUT ROWID

# INSTRUCTION_VALUE
CREATE TABLE instruction_value(profile_id INTEGER NOT NULL REFERENCES code_profile, function_id INTEGER NOT NULL
REFERENCES code_function, offset INTEGER NOT NULL, metric_id INTEGER NOT NULL REFERENCES metric, value REAL NOT NULL,
PRIMARY KEY(profile_id, function_id, offset, metric_id)) WITHOUT ROWID

# TIMELINE_PASS
CREATE TABLE timeline_pass(launch_id INTEGER NOT NULL REFERENCES launch, pass INTEGER NOT NULL, interval_ns INTEGER
NOT NULL, samples INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY(launch_id, pass)) WITHOUT ROWID

# TIMELINE
CREATE TABLE timeline(launch_id INTEGER NOT NULL REFERENCES launch, metric_id INTEGER NOT NULL REFERENCES metric,
start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, value REAL, PRIMARY KEY(launch_id, metric_id, start_ns))
WITHOUT ROWID

# TRACE
CREATE TABLE trace(process_id INTEGER PRIMARY KEY REFERENCES process, start_unix_ns INTEGER NOT NULL, end_unix_ns
INTEGER, activities INTEGER NOT NULL, dropped INTEGER NOT NULL, unknown INTEGER NOT NULL, reason TEXT NOT NULL)

# TRACE_NAME
CREATE TABLE trace_name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, demangled TEXT NOT NULL, function TEXT NOT
NULL)

-- For people with an SQLite client; kprof itself never reads them.
# VIEWS
CREATE VIEW launch_metrics AS SELECT launch.id AS launch, process.pid AS pid, kernel.function AS kernel,
metric.name AS metric, value.value AS value, metric.unit AS unit FROM value JOIN launch ON launch.id=value.launch_id
JOIN metric ON metric.id=value.metric_id JOIN kernel ON kernel.id=launch.kernel_id JOIN process ON
process.id=launch.process_id;
CREATE VIEW launches AS SELECT launch.id AS launch, process.pid AS pid, process.name AS process,
kernel.function AS kernel, kernel.demangled AS demangled, device.name AS device, device.chip AS chip,
launch.position AS position, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread_compiled,
static_smem_bytes, dynamic_smem_bytes, replay_mode, passes, measured, launch.reason AS reason,
graph_node.node AS graph_node, nvtx.ranges AS nvtx, stack.line AS launched_from FROM launch JOIN process ON
process.id=launch.process_id JOIN kernel ON kernel.id=launch.kernel_id JOIN device ON device.id=launch.device_id
LEFT JOIN graph_node ON graph_node.launch_id=launch.id LEFT JOIN nvtx ON nvtx.launch_id=launch.id
LEFT JOIN launch_stack ON launch_stack.launch_id=launch.id LEFT JOIN stack ON stack.id=launch_stack.stack_id;
CREATE VIEW kernel_summary AS SELECT kernel.function AS kernel, metric.name AS metric, count(value.value) AS launches,
min(value.value) AS minimum, max(value.value) AS maximum, avg(value.value) AS average, metric.unit AS unit
FROM value JOIN launch ON launch.id=value.launch_id JOIN kernel ON kernel.id=launch.kernel_id JOIN metric ON
metric.id=value.metric_id GROUP BY kernel.function, metric.id;
CREATE VIEW seen_kernels AS SELECT kernel.function AS kernel, kernel.demangled AS demangled,
sum(seen.launches) AS launches FROM seen JOIN kernel ON kernel.id=seen.kernel_id
GROUP BY kernel.mangled ORDER BY launches DESC, kernel;
CREATE VIEW metric_passes AS SELECT chip, metric.name AS metric, count(*) AS passes, min(pass) AS first,
max(pass) AS last FROM schedule JOIN metric ON metric.id=schedule.metric_id
GROUP BY chip, metric.id;
