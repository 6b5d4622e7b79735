-- SQL of trace_project.c; cmake/sql.cmake tells how texts stand for others.

# RANGE_SPAN
CREATE TEMP TABLE range_span(range INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER, ops INTEGER)

# KERNEL_RANGE
CREATE TEMP TABLE kernel_range(kernel INTEGER PRIMARY KEY, range INTEGER)

-- Of the kernels of one name in the ranges of one name, style and thread: in how many ranges they are, how many they
-- are, and the figures of their times. %s is the column with the kernels' names.
# RANGE_KERNEL
CREATE TEMP TABLE range_kernel_%s(process_id INTEGER, thread INTEGER, name_id INTEGER, domain_id INTEGER, style_id
INTEGER, kernel_name_id INTEGER, ranges INTEGER, kernels INTEGER, total REAL, average REAL, median REAL, least INTEGER,
most INTEGER, deviation REAL)

# ADD_RANGE_KERNEL
INSERT INTO temp.range_kernel_%s VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)

# NAME_OF_KERNEL
(SELECT %s FROM temp.name_key n WHERE n.id=work.name_id)

# KNOWN
WHERE end_ns>=start_ns

-- process, thread, time and event; of a range id, whether it has no end, name, domain, style and level; of a call id
-- of the kernel (0: it asked for none), start and end of what it asked for, and the kernel's name.
# EVENTS(level, kernel_name)
WITH work AS (SELECT process_id, correlation, id, start_ns, end_ns, name_id FROM trace_kernel $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns, 0 FROM trace_graph $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns, 0 FROM trace_copy $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns, 0 FROM trace_set $KNOWN)
SELECT process_id, thread, start_ns AS t, 0 AS what, r.id, end_ns IS NULL, name_id, domain_id, style_id, $level
FROM trace_range r JOIN trace_name s ON s.id=style_id
WHERE s.text!='Marker' AND thread=end_thread AND coalesce(end_ns>=start_ns, 1)
UNION ALL SELECT process_id, thread, end_ns, 1, id, 0, 0, 0, 0, 0 FROM trace_range
WHERE end_ns>=start_ns AND thread=end_thread
UNION ALL SELECT process_id, thread, call.start_ns, 2, id, work.start_ns, work.end_ns, $kernel_name, 0, 0
FROM work JOIN temp.first_call call USING(process_id, correlation) ORDER BY 1, 2, 3, 4

# LEVEL_OF_RANGE
(SELECT level FROM temp.range_tree WHERE range=r.id)
