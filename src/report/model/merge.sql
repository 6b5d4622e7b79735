-- SQL of merge.c; cmake/sql.cmake tells how texts stand for others.

# TABLES
CREATE TEMP TABLE new_kernel(old INTEGER PRIMARY KEY, id INTEGER NOT NULL);
CREATE TEMP TABLE new_device(old INTEGER PRIMARY KEY, id INTEGER NOT NULL);
CREATE TEMP TABLE new_metric(old INTEGER PRIMARY KEY, id INTEGER NOT NULL);
CREATE TEMP TABLE taken(launch INTEGER PRIMARY KEY);
CREATE TEMP TABLE kept_profile(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE kept_function(id INTEGER PRIMARY KEY);
CREATE TEMP TABLE new_file(old INTEGER PRIMARY KEY, id INTEGER NOT NULL);
CREATE TEMP TABLE alike(old INTEGER PRIMARY KEY, id INTEGER NOT NULL);
CREATE TEMP TABLE new_function(old INTEGER PRIMARY KEY, id INTEGER NOT NULL)

# NAME_OF_SOURCE
SELECT name FROM main.source JOIN main.process_source ON source_id=source.id
WHERE process_id=?1

# SOURCE_OF_RUN
INSERT INTO main.source SELECT ?1+1, ?2, command_line, working_directory, kprof_version, sets, start_unix_ns
FROM source.run

# SOURCES
INSERT INTO main.source SELECT id+?1, name, command_line, working_directory, kprof_version, sets, start_unix_ns
FROM source.source

# CHANGE_SECTION
UPDATE main.section SET definition=?3, name=json_extract(?3, '$.name') WHERE chip=?1 AND identifier=?2

# COPY_LEFT_OUT
INSERT INTO main.left_out SELECT NULL, chip, name FROM source.left_out AS other
WHERE chip=?1 AND NOT EXISTS(SELECT 1 FROM main.left_out AS own WHERE own.chip=?1 AND own.name=other.name)
ORDER BY id

# PARTS
SELECT pass, counters, sm_side FROM

# SCHEDULED
SELECT new_metric.id, pass FROM source.schedule JOIN new_metric ON old=metric_id
WHERE chip=?1

# DIFFERS
SELECT EXISTS($PARTS source.pass WHERE chip=?1 EXCEPT $PARTS main.pass WHERE chip=?1) OR EXISTS($PARTS main.pass
WHERE chip=?1 EXCEPT $PARTS source.pass WHERE chip=?1) OR EXISTS($SCHEDULED EXCEPT
SELECT metric_id, pass FROM main.schedule WHERE chip=?1)

# COPY_SCHEDULE
INSERT INTO main.schedule SELECT ?1, new_metric.id, pass+(SELECT coalesce(max(pass), 0)
FROM main.pass WHERE chip=?1) FROM source.schedule JOIN new_metric ON old=metric_id
WHERE chip=?1 AND new_metric.id NOT IN (SELECT metric_id FROM main.schedule
WHERE chip=?1)

# COPY_PASSES
INSERT INTO main.pass SELECT ?1, pass+(SELECT coalesce(max(pass), 0) FROM main.pass
WHERE chip=?1), counters, sm_side FROM source.pass WHERE chip=?1

# COPY_LAUNCHES
INSERT INTO main.launch SELECT id+?1, process_id+?2, (SELECT id FROM new_kernel
WHERE old=kernel_id), (SELECT id FROM new_device WHERE old=device_id)

# CHOOSE
DELETE FROM kept_profile;
DELETE FROM kept_function;
INSERT INTO kept_profile SELECT id FROM source.code_profile WHERE id IN (SELECT profile_id
FROM source.launch_code_profile WHERE ?6=0 OR launch_id IN (SELECT launch FROM taken)) AND (NOT EXISTS(SELECT 1
FROM source.code_profile_metric WHERE profile_id=code_profile.id) OR EXISTS(SELECT 1
FROM source.code_profile_metric WHERE profile_id=code_profile.id AND metric_id IN
(SELECT old FROM new_metric)));
INSERT INTO kept_function SELECT DISTINCT function_id FROM source.instruction_value
WHERE profile_id IN kept_profile AND metric_id IN (SELECT old FROM new_metric)

# USED_BY(table)
SELECT file_id FROM source.$table WHERE function_id IN kept_function

# NEW_FILES(more)
INSERT INTO new_file SELECT old.id, coalesce(min(own.id), old.id+?3) FROM source.code_file AS old
LEFT JOIN main.code_file AS own ON own.path=old.path AND own.bytes IS old.bytes AND own.hash IS old.hash AND
own.content IS old.content WHERE old.id IN ($USED_BY{code_line}$more) GROUP BY old.id

# DIFFER(columns, table, own)
EXISTS(SELECT $columns FROM source.$table WHERE function_id=old.id EXCEPT SELECT $own
FROM main.$table WHERE function_id=own.id) OR EXISTS(SELECT $own FROM main.$table
WHERE function_id=own.id EXCEPT SELECT $columns FROM source.$table WHERE function_id=old.id)

# INSTRUCTION
offset, text, space, operation, access_bits

# LINE
offset, depth, line, function,

# FORGET_SHARED
DELETE FROM new_file;
DELETE FROM alike;
DELETE FROM new_function

# SHARE
INSERT INTO alike SELECT old.id, min(own.id) FROM source.code AS old JOIN main.code AS own ON own.crc=old.crc AND
own.bytes=old.bytes AND own.text_state=old.text_state AND own.line_state=old.line_state AND own.cubin IS old.cubin
WHERE old.id IN (SELECT code_id FROM source.code_function WHERE id IN kept_function)
GROUP BY old.id;
DELETE FROM alike WHERE EXISTS(SELECT 1 FROM source.code_function AS old JOIN main.code_function AS own ON
own.code_id=alike.id AND own.mangled=old.mangled WHERE old.code_id=alike.old AND old.id IN kept_function AND
(own.demangled<>old.demangled OR own.bytes<>old.bytes OR $DIFFER{$INSTRUCTION}{code_instruction}{$INSTRUCTION} OR
$DIFFER{$LINE (SELECT id FROM new_file WHERE old=file_id)}{code_line}{$LINE file_id} OR $DIFFER{offset,
producer_offset}{code_wait}{offset, producer_offset}));
INSERT INTO new_function SELECT old.id, coalesce(own.id, old.id+?4) FROM source.code_function AS old
LEFT JOIN alike ON alike.old=old.code_id LEFT JOIN main.code_function AS own ON own.code_id=alike.id AND
own.mangled=old.mangled WHERE old.id IN kept_function

# OF_NEW
JOIN new_function ON old=function_id WHERE new_function.id>?4

# COPY_CODE
INSERT INTO main.code_profile SELECT id+?5, process_id+?2, (SELECT id FROM new_kernel
WHERE old=kernel_id), (SELECT id FROM new_device WHERE old=device_id), (SELECT min(launch_id)
FROM source.launch_code_profile WHERE profile_id=code_profile.id AND (?6=0 OR launch_id IN
(SELECT launch FROM taken)))+?1, counted, sampled, period_cycles, dropped, reason
FROM source.code_profile WHERE id IN kept_profile;
INSERT INTO main.launch_code_profile SELECT launch_id+?1, profile_id+?5 FROM source.launch_code_profile
WHERE profile_id IN kept_profile AND (?6=0 OR launch_id IN (SELECT launch FROM taken));
INSERT INTO main.code_profile_metric SELECT profile_id+?5, (SELECT id FROM new_metric
WHERE old=metric_id) FROM source.code_profile_metric WHERE profile_id IN kept_profile AND metric_id IN
(SELECT old FROM new_metric);
INSERT INTO main.instruction_value SELECT profile_id+?5, new_function.id, offset, new_metric.id, value
FROM source.instruction_value JOIN new_metric ON new_metric.old=metric_id JOIN new_function ON
new_function.old=function_id WHERE profile_id IN kept_profile;
INSERT INTO main.code SELECT id+?4, crc, bytes, text_state, line_state, cubin FROM source.code
WHERE id IN (SELECT code_id FROM source.code_function WHERE id IN kept_function) AND id NOT IN
(SELECT old FROM alike);
INSERT INTO main.code_function SELECT new_function.id, coalesce((SELECT id FROM alike
WHERE old=code_id), code_id+?4), mangled, demangled, bytes FROM source.code_function JOIN new_function ON
old=code_function.id WHERE new_function.id>?4;
INSERT INTO main.code_instruction SELECT new_function.id, offset, text, space, operation, access_bits
FROM source.code_instruction $OF_NEW;
INSERT INTO main.code_line SELECT new_function.id, offset, depth, (SELECT id FROM new_file
WHERE old=file_id), line, function FROM source.code_line $OF_NEW;
INSERT INTO main.code_wait SELECT new_function.id, offset, producer_offset FROM source.code_wait $OF_NEW;
INSERT INTO main.code_file SELECT new_file.id, path, bytes, hash, content FROM source.code_file JOIN new_file ON
old=code_file.id WHERE new_file.id>?3

# COPY_PTX
INSERT INTO main.code_ptx SELECT new_function.id, offset, (SELECT id FROM new_file
WHERE old=file_id), line FROM source.code_ptx $OF_NEW

# COPY_STACKS
INSERT OR IGNORE INTO main.stack SELECT NULL, line, module, frames, cut, reason FROM source.stack
WHERE ?3=0 OR id IN (SELECT stack_id FROM source.launch_stack WHERE launch_id IN (SELECT launch
FROM taken)) ORDER BY id;
INSERT INTO main.launch_stack SELECT launch_id+?1, (SELECT id FROM main.stack AS own
WHERE own.frames=old.frames AND own.cut=old.cut AND own.reason=old.reason), origin
FROM source.launch_stack JOIN source.stack AS old ON old.id=stack_id WHERE launch_id IN
(SELECT launch FROM taken) OR ?3=0 ORDER BY launch_id

# COPY_TIMELINES
INSERT INTO main.timeline_pass SELECT launch_id+?1, pass, interval_ns, samples, reason
FROM source.timeline_pass WHERE launch_id IN (SELECT launch FROM taken) OR ?3=0;
INSERT INTO main.timeline SELECT launch_id+?1, new_metric.id, start_ns, duration_ns, value
FROM source.timeline JOIN new_metric ON old=metric_id WHERE launch_id IN (SELECT launch
FROM taken) OR ?3=0

# COPY_TRACES
INSERT INTO main.trace SELECT process_id+?1, start_unix_ns, end_unix_ns, activities, dropped, unknown, reason
FROM source.trace ORDER BY process_id

# COPY_NAMES
INSERT OR IGNORE INTO main.trace_name SELECT NULL, text, demangled, function FROM source.trace_name
ORDER BY id

# COPY_CENSUS
INSERT INTO main.census SELECT NULL, process_id+?2, (SELECT id FROM new_kernel
WHERE old=kernel_id), (SELECT id FROM new_device WHERE old=device_id)

# IS_DAMAGED
SELECT EXISTS(SELECT 1 FROM source.launch WHERE id<0 OR id>=1<<40 OR process_id NOT IN
(SELECT id FROM source.process)) OR EXISTS(SELECT 1 FROM source.seen WHERE process_id NOT IN
(SELECT id FROM source.process)) OR (SELECT min(launch_id)<0 OR max(launch_id)>(SELECT max(id)
FROM source.launch) FROM source.value)

# COPY_NVTX
INSERT INTO main.nvtx SELECT launch_id+?1, ranges FROM source.nvtx WHERE (launch_id IN
(SELECT launch FROM taken) OR ?3=0) ORDER BY launch_id

# COPY_NODES
INSERT INTO main.graph_node SELECT launch_id+?1, node FROM source.graph_node
WHERE (launch_id IN (SELECT launch FROM taken) OR ?3=0) ORDER BY launch_id

# COPY_VALUES
INSERT INTO main.value SELECT launch_id+?1, (SELECT id FROM new_metric WHERE old=metric_id), value
FROM source.value WHERE (?3=0 OR (launch_id IN (SELECT launch FROM taken) AND metric_id IN
(SELECT old FROM new_metric))) ORDER BY launch_id, metric_id

# COPY_SEEN
INSERT INTO main.seen SELECT process_id+?2, (SELECT id FROM new_kernel WHERE old=kernel_id), launches
FROM source.seen ORDER BY process_id, kernel_id

# OF_MANY
UPDATE run SET start_unix_ns=(SELECT min(start_unix_ns) FROM main.source), sets=(SELECT json_group_array(DISTINCT
value) FROM (SELECT value FROM main.source, json_each(iif(json_valid(sets), sets, '[]'))
ORDER BY source.id) WHERE value NOT LIKE '$KPROF_RANK_OF % of %')

# OF_ONE
UPDATE run SET (command_line, working_directory, kprof_version, sets, start_unix_ns)=(SELECT command_line,
working_directory, kprof_version, sets, start_unix_ns FROM main.source);
DELETE FROM process_source;
DELETE FROM source
