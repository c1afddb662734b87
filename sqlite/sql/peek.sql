-- Those that wait, and those in flight whose leases have ended: each from its own place on.
WITH page AS (
  SELECT * FROM (
    SELECT id, state, at, place, due, attempts, content
    FROM delayq_message INDEXED BY delayq_message_by_time
    WHERE queue = ?1 AND state = 0 AND (at, place) > (?3, ?4) ORDER BY at, place LIMIT ?5)
  UNION ALL
  SELECT * FROM (
    SELECT id, state, at, place, due, attempts, content
    FROM delayq_message INDEXED BY delayq_message_by_time
    WHERE queue = ?1 AND state = 1 AND at <= ?2 AND (due, place) > (?3, ?4) ORDER BY due, place LIMIT ?5))
SELECT p.id, p.state, p.at, p.place, p.due, p.attempts, 0, NULL, c.headers, c.body
FROM page AS p CROSS JOIN delayq_content AS c ON c.key = p.content
ORDER BY p.due, p.place LIMIT ?5
