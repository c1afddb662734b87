SELECT paused_until FROM delayq_queue WHERE number = ?1
