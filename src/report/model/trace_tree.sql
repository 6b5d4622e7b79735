-- SQL of trace_tree.c; cmake/sql.cmake tells how texts stand for others.

# TABLES
CREATE TEMP TABLE range_tree(range INTEGER PRIMARY KEY, parent INTEGER, level INTEGER);
CREATE TEMP TABLE push_tree(range INTEGER PRIMARY KEY, parent INTEGER, level INTEGER)

# IN_ORDER
SELECT process_id, thread, r.id, start_ns, coalesce(end_ns, 9223372036854775807) AS until
FROM trace_range r JOIN trace_name s ON s.id=style_id WHERE until>=start_ns AND thread=end_thread AND

-- If two ranges have the same times, the one that was recorded last has ended last; those that were not ended are
-- recorded in the order in which they began.
# BY_TIME
ORDER BY process_id, thread, start_ns, until DESC, iif(end_ns IS NULL, r.id, -r.id)

# ALL_RANGES
$IN_ORDER s.text!='Marker' $BY_TIME

# PUSHED_RANGES
$IN_ORDER s.text='PushPop' $BY_TIME
