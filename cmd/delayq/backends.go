package main

// The backends that --url can name, beside memory.
import (
	_ "github.com/delayq/delayq/keyspace"
	_ "github.com/delayq/delayq/redisson"
	_ "github.com/delayq/delayq/zsetpoll"
)
