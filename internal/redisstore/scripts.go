package redisstore

import (
	"embed"

	"github.com/delayq/delayq/internal/redisscript"
)

//go:embed lua/*.lua
var files embed.FS

var (
	scheduleScript   = redisscript.Load(files, "schedule")
	claimScript      = redisscript.Load(files, "claim")
	expireScript     = redisscript.Load(files, "expire")
	lookScript       = redisscript.Load(files, "look")
	moveScript       = redisscript.Load(files, "move")
	takeScript       = redisscript.Load(files, "take")
	ackScript        = redisscript.Load(files, "ack")
	nackScript       = redisscript.Load(files, "nack")
	extendScript     = redisscript.Load(files, "extend")
	buryScript       = redisscript.Load(files, "bury")
	cancelScript     = redisscript.Load(files, "cancel")
	rescheduleScript = redisscript.Load(files, "reschedule")
	statsScript      = redisscript.Load(files, "stats")
	listDeadScript   = redisscript.Load(files, "list_dead")
	redriveScript    = redisscript.Load(files, "redrive")
	deleteDeadScript = redisscript.Load(files, "delete_dead")
	peekScript       = redisscript.Load(files, "peek")
	purgeScript      = redisscript.Load(files, "purge")
)
