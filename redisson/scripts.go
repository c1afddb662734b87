package redisson

import (
	"embed"

	"github.com/delayq/delayq/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

var (
	scheduleScript   = script.Load(files, "index", "schedule")
	claimScript      = script.Load(files, "index", "destination", "claim")
	maintainScript   = script.Load(files, "index", "destination", "maintain")
	ackScript        = script.Load(files, "ack")
	nackScript       = script.Load(files, "nack")
	extendScript     = script.Load(files, "extend")
	deadScript       = script.Load(files, "dead")
	cancelScript     = script.Load(files, "index", "destination", "cancel")
	rescheduleScript = script.Load(files, "index", "destination", "reschedule")
	statsScript      = script.Load(files, "index", "destination", "stats")
	listDeadScript   = script.Load(files, "list_dead")
	redriveScript    = script.Load(files, "redrive")
	deleteDeadScript = script.Load(files, "delete_dead")
	restoreScript    = script.Load(files, "restore")
	pendingScript    = script.Load(files, "pending")
	peekScript       = script.Load(files, "index", "destination", "peek")
	purgeScript      = script.Load(files, "purge")
	typesScript      = script.Load(files, "types")
)
