-- Messages and windows that were there before a number was given out.
SELECT id, state, content FROM delayq_message WHERE queue = ?1 AND content < ?2 AND id > ?3 ORDER BY id LIMIT ?4
