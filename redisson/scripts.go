package redisson

import (
	"embed"

	"github.com/delayq/delayq/internal/redisscript"
)

//go:embed lua/*.lua
var files embed.FS

var (
	scheduleScript   = redisscript.Load(files, "index", "schedule")
	claimScript      = redisscript.Load(files, "index", "destination", "claim")
	tendScript       = redisscript.Load(files, "index", "destination", "tend")
	ackScript        = redisscript.Load(files, "ack")
	nackScript       = redisscript.Load(files, "nack")
	extendScript     = redisscript.Load(files, "extend")
	buryScript       = redisscript.Load(files, "bury")
	cancelScript     = redisscript.Load(files, "index", "destination", "cancel")
	rescheduleScript = redisscript.Load(files, "index", "destination", "reschedule")
	statsScript      = redisscript.Load(files, "index", "destination", "stats")
	listDeadScript   = redisscript.Load(files, "list_dead")
	redriveScript    = redisscript.Load(files, "redrive")
	deleteDeadScript = redisscript.Load(files, "delete_dead")
	restoreScript    = redisscript.Load(files, "restore")
	pendingScript    = redisscript.Load(files, "pending")
	peekScript       = redisscript.Load(files, "index", "destination", "peek")
	purgeScript      = redisscript.Load(files, "purge")
	typesScript      = redisscript.Load(files, "types")
)
