SELECT m.id, m.state, m.at, m.place, m.due, m.attempts, m.unique_until, m.reason, c.headers, c.body
FROM delayq_message AS m LEFT JOIN delayq_content AS c ON c.key = m.content
WHERE m.queue = ?1 AND m.id = ?2
