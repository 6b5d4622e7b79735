-- SQL of trace_project.c; cmake/sql.cmake tells how texts stand for others.

# RANGE_KERNEL
CREATE TEMP TABLE range_kernel(range INTEGER NOT NULL, kernel INTEGER NOT NULL)

# RANGE_SPAN
CREATE TEMP TABLE range_span(range INTEGER PRIMARY KEY, start_ns INTEGER, end_ns INTEGER, ops INTEGER)

# KNOWN
WHERE end_ns>=start_ns

-- process, thread, time, event, id of a range or a kernel (0: of no kernel), start and end of what a call asked
-- for, or whether a range that begins has no end
# EVENTS
WITH work AS (SELECT process_id, correlation, id, start_ns, end_ns FROM trace_kernel $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns FROM trace_graph $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns FROM trace_copy $KNOWN
UNION ALL SELECT process_id, correlation, 0, start_ns, end_ns FROM trace_set $KNOWN)
SELECT process_id, thread, start_ns AS t, 0 AS what, r.id, end_ns IS NULL, 0 FROM trace_range r JOIN trace_name s ON
s.id=style_id WHERE s.text!='Marker' AND thread=end_thread AND coalesce(end_ns>=start_ns, 1)
UNION ALL SELECT process_id, thread, end_ns, 1, id, 0, 0 FROM trace_range
WHERE end_ns>=start_ns AND thread=end_thread
UNION ALL SELECT process_id, thread, call.start_ns, 2, id, work.start_ns, work.end_ns
FROM work JOIN temp.first_call call USING(process_id, correlation) ORDER BY 1, 2, 3, 4
