SELECT count(*) FROM sqlite_schema WHERE name = 'delayq_store'
