package main

// The backends that a URL can name, besides memory.
import (
	_ "github.com/delayq/delayq/httpclient"
	_ "github.com/delayq/delayq/keyspace"
	_ "github.com/delayq/delayq/postgres"
	_ "github.com/delayq/delayq/rabbitmq"
	_ "github.com/delayq/delayq/redisson"
	_ "github.com/delayq/delayq/sqlite"
	_ "github.com/delayq/delayq/zsetpoll"
)
