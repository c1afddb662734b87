INSERT INTO delayq_message (queue, id, state, at, place, due, attempts, token, unique_until, content)
VALUES (?1, ?2, 0, ?3, ?4, ?3, 0, 0, ?5, ?4) ON CONFLICT DO NOTHING
