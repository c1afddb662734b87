SELECT m.id, m.state, m.at, m.place, m.due, m.attempts, 0, m.reason, c.headers, c.body
FROM delayq_message AS m INDEXED BY delayq_message_by_time CROSS JOIN delayq_content AS c ON c.key = m.content
WHERE m.queue = ?1 AND m.state = 2 AND (m.at, m.place) > (?2, ?3) ORDER BY m.at, m.place LIMIT ?4
