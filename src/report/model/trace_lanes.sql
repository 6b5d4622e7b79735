-- SQL of trace_lanes.c; cmake/sql.cmake tells how texts stand for others.

# KNOWN
WHERE end_ns>=start_ns

# WORK
SELECT process_id, device, context, stream, 1, id, start_ns, end_ns FROM trace_kernel $KNOWN
UNION ALL SELECT process_id, device, context, stream, 2, id, start_ns, end_ns FROM trace_copy $KNOWN
UNION ALL SELECT process_id, device, context, stream, 3, id, start_ns, end_ns FROM trace_set $KNOWN
UNION ALL SELECT process_id, device, context, stream, 4, id, start_ns, end_ns FROM trace_graph $KNOWN
ORDER BY 1, 2, 3, 4, 7, 8

# RANGES
SELECT process_id, thread, r.id, start_ns, end_ns FROM trace_range r JOIN trace_name s ON s.id=style_id
WHERE s.text!='StartEnd' AND end_ns>=start_ns ORDER BY 1, 2, 4, 5 DESC
