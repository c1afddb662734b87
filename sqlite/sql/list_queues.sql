SELECT name FROM delayq_queue ORDER BY name
