SELECT pushed, acked FROM delayq_queue WHERE number = ?1
