INSERT INTO delayq_content (key, headers, body) VALUES (?1, ?2, ?3)
