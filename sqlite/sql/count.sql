UPDATE delayq_queue SET pushed = pushed + ?2, acked = acked + ?3 WHERE number = ?1
