SELECT
  (SELECT at FROM delayq_message WHERE queue = ?1 AND state = 0 ORDER BY at LIMIT 1),
  (SELECT at FROM delayq_message WHERE queue = ?1 AND state = 1 ORDER BY at LIMIT 1),
  (SELECT paused_until FROM delayq_queue WHERE number = ?1)
