SELECT m.id, m.at, m.place, m.attempts, m.content, c.headers, c.body
FROM delayq_message AS m INDEXED BY delayq_message_by_time CROSS JOIN delayq_content AS c ON c.key = m.content
WHERE m.queue = ?1 AND m.state = 0 AND m.at <= ?2 ORDER BY m.at, m.place LIMIT ?3
