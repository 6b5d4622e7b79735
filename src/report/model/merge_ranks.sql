-- SQL of merge_ranks.c; cmake/sql.cmake tells how texts stand for others.

-- Launches with what they have in common, and their places among those of their rank.
# MATCH_LAUNCHES
CREATE TEMP TABLE ranked AS SELECT launch.id AS id, source_id AS source, mangled || ' ' || device.name || ' ' ||
grid_x || ' ' || grid_y || ' ' || grid_z || ' ' || block_x || ' ' || block_y || ' ' || block_z || ' ' || cluster_x ||
' ' || cluster_y || ' ' || cluster_z || ' ' || dynamic_smem_bytes AS shape, 0 AS turn
FROM main.launch JOIN main.process_source USING (process_id) JOIN main.kernel ON kernel.id=kernel_id JOIN main.device
ON device.id=device_id WHERE measured>0;
CREATE TEMP TABLE placed AS SELECT id, source, shape, row_number() OVER (PARTITION BY source, shape
ORDER BY id) AS turn FROM ranked;
CREATE INDEX temp.placed_place ON placed(shape, turn, source);
CREATE TEMP TABLE joined AS SELECT id, (SELECT first.id FROM placed AS first
WHERE first.shape=placed.shape AND first.turn=placed.turn ORDER BY first.source LIMIT 1) AS base
FROM placed;
DELETE FROM joined WHERE id=base;
CREATE UNIQUE INDEX temp.joined_id ON joined(id);
CREATE INDEX temp.joined_base ON joined(base);

# JOIN_VALUES
INSERT INTO main.value SELECT base, metric_id, value FROM main.value AS other JOIN joined ON joined.id=other.launch_id
WHERE other.value IS NOT NULL ON CONFLICT DO UPDATE SET value=excluded.value
WHERE value.value IS NULL;

# COUNT_MEASURED
UPDATE main.launch SET measured=(SELECT count(value) FROM main.value JOIN main.metric ON metric.id=metric_id
WHERE launch_id=main.launch.id AND kind='hardware') WHERE id IN (SELECT base FROM joined);

# REMOVE_LAUNCHES(which)
DELETE FROM main.value WHERE launch_id IN ($which);
DELETE FROM main.nvtx WHERE launch_id IN ($which);
DELETE FROM main.graph_node WHERE launch_id IN ($which);
DELETE FROM main.launch_stack WHERE launch_id IN ($which);
DELETE FROM main.launch WHERE id IN ($which);

# JOIN_LAUNCHES
$JOIN_VALUES UPDATE main.launch SET passes=passes+(SELECT sum(other.passes) FROM main.launch AS other JOIN joined ON
joined.id=other.id WHERE base=main.launch.id), reason=reason || iif(reason='', '', '; ') || 'its passes are of ' ||
(SELECT count(*)+1 FROM joined WHERE base=main.launch.id) ||
' launches, one of each rank, of this kernel and shape at the same place in their order'
WHERE id IN (SELECT base FROM joined);
$COUNT_MEASURED $REMOVE_LAUNCHES{SELECT id FROM joined}

# FORGET
DROP TABLE ranked;
DROP TABLE placed;
DROP TABLE joined

# JOINED
SELECT launch.id, chip FROM main.launch JOIN main.device ON device.id=device_id
WHERE launch.id IN (SELECT base FROM joined) ORDER BY launch.id

# RANKS_OF_REPORTS
SELECT (SELECT count(*) FROM main.source), count(*), count(DISTINCT value), count(DISTINCT substr(value, instr(value,
' of '))), max(CAST(substr(value, instr(value, ' of ')+4) AS INT)) FROM main.source, json_each(iif(json_valid(sets),
sets, '[]')) WHERE value LIKE '$KPROF_RANK_OF % of %'

# INCOMPLETE
SELECT count(*) FROM (SELECT count(*) AS ranks FROM placed GROUP BY shape, turn)
WHERE ranks<(SELECT count(DISTINCT source) FROM placed)

-- Launches of runs with what has to agree, and their places among those. Processes of one executable are numbered
-- in the order of their lines, as several may start at once.
# NUMBER_PROCESSES
CREATE TEMP TABLE numbered AS SELECT process.id AS id, source_id AS source, executable || ' ' || row_number() OVER
(PARTITION BY source_id, executable ORDER BY command_line, start_unix_ns, process.id) AS line
FROM main.process JOIN main.process_source ON process_id=process.id;
CREATE TEMP TABLE ranked AS SELECT launch.id AS id, source, line, function, line || ' ' || mangled || ' ' || device_id

# SHAPE
|| ' ' || grid_x || ' ' || grid_y || ' ' || grid_z || ' ' || block_x || ' ' || block_y || ' ' || block_z

# RANK_LAUNCHES
AS shape, row_number() OVER (PARTITION BY process_id ORDER BY position, launch.id) AS place
FROM main.launch JOIN numbered ON numbered.id=process_id JOIN main.kernel ON kernel.id=kernel_id;
CREATE TEMP TABLE placed AS SELECT id, source, function, shape,

# PLACE_RUNS
AS turn FROM ranked;
CREATE INDEX temp.placed_place ON placed(shape, turn, source);

# DROP_FURTHER
DELETE FROM placed WHERE source=(SELECT max(source) FROM placed) AND NOT EXISTS(SELECT 1 FROM placed AS other
WHERE other.shape=placed.shape AND other.turn=placed.turn AND other.source!=placed.source);

# MATCH_RUNS
CREATE TEMP TABLE whole AS SELECT shape, turn, min(source) AS source FROM placed
GROUP BY shape, turn HAVING count(*)=

# JOIN_RUNS
;
CREATE INDEX temp.whole_place ON whole(shape, turn);
CREATE TEMP TABLE bases AS SELECT id FROM placed JOIN whole USING (shape, turn, source);
CREATE UNIQUE INDEX temp.bases_id ON bases(id);
CREATE TEMP TABLE joined AS SELECT placed.id AS id, first.id AS base FROM placed JOIN whole USING (shape, turn) JOIN
placed AS first ON first.shape=whole.shape AND first.turn=whole.turn AND first.source=whole.source
WHERE placed.id!=first.id;
CREATE UNIQUE INDEX temp.joined_id ON joined(id);
CREATE INDEX temp.joined_base ON joined(base);

-- All that launches lack of a run with metrics of several passes has one reason.
# TOLD
iif(other.id NOT IN (SELECT id FROM sampled), other.reason, iif(other.measured>0, '',
'metrics that take several passes at once are measured where a launch can be repeated, or others of its ' ||
'kernel and shape, or ranges of its name, follow'))

# JOIN_VALUES_OF_RUNS
$JOIN_VALUES UPDATE main.launch SET passes=passes+(SELECT coalesce(sum(other.passes), 0)
FROM main.launch AS other JOIN joined ON joined.id=other.id WHERE base=main.launch.id), profile_ns=profile_ns+(SELECT
coalesce(sum(other.profile_ns), 0) FROM main.launch AS other JOIN joined ON joined.id=other.id
WHERE base=main.launch.id), reason=(SELECT coalesce(group_concat(told, '; '), '')
FROM (SELECT DISTINCT $TOLD AS told FROM main.launch AS other WHERE (other.id=main.launch.id OR other.id IN
(SELECT id FROM joined WHERE base=main.launch.id)) AND other.reason!='')
WHERE told!=''), replay_mode=iif(EXISTS(SELECT 1 FROM main.launch AS other
WHERE other.measured>0 AND (other.id=main.launch.id OR other.id IN (SELECT id FROM joined
WHERE base=main.launch.id))), 'application', 'none') WHERE id IN (SELECT id FROM bases);

# LATER
(SELECT id FROM numbered WHERE source!=(SELECT min(source) FROM numbered))

# LEAVE_BASES
$COUNT_MEASURED $REMOVE_LAUNCHES{SELECT id FROM ranked EXCEPT SELECT id FROM bases}
DELETE FROM main.seen WHERE process_id IN $LATER;
DELETE FROM main.message WHERE process_id IN $LATER;
DELETE FROM main.process_device WHERE process_id IN $LATER;
DELETE FROM main.process_source;
DELETE FROM main.source;
DELETE FROM main.process WHERE id IN $LATER;

# FORGET_RUNS
DROP TABLE numbered;
DROP TABLE ranked;
DROP TABLE placed;
DROP TABLE whole;
DROP TABLE sampled;
DROP TABLE bases;
DROP TABLE joined

# FROM_PARTS
FROM main.launch JOIN main.device ON device.id=device_id JOIN main.value ON launch_id=launch.id JOIN main.metric ON
metric.id=metric_id JOIN main.metric AS own ON own.name=?1 WHERE chip=?2 AND metric.name IN
(SELECT value FROM json_each(?3)) GROUP BY launch.id HAVING count(value.value)

# GREATEST_OF_SOME
a throughput is the greatest of those of its parts that were measured, and not all were

# PUT_GREATEST
INSERT INTO main.value SELECT launch.id, own.id, max(value.value) $FROM_PARTS>=iif(?4='some', 1,
json_array_length(?3)) ON CONFLICT DO UPDATE SET value=excluded.value

# TELL_GREATEST
UPDATE main.launch SET reason=reason || iif(reason='', '', '; ') || '$GREATEST_OF_SOME'
WHERE ?4='some' AND instr(reason, '$GREATEST_OF_SOME')=0 AND id IN (SELECT launch.id $FROM_PARTS BETWEEN 1 AND
json_array_length(?3)-1)
