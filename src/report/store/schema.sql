-- SQL of schema.c; cmake/sql.cmake tells how texts stand for others.

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
