UPDATE delayq_content SET headers = ?2, body = ?3 WHERE key = ?1
