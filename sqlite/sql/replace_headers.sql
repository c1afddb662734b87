UPDATE delayq_content SET headers = ?2 WHERE key = ?1
