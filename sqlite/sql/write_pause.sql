UPDATE delayq_queue SET paused_until = ?2 WHERE number = ?1
