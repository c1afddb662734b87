package redisstore

import (
	"embed"

	"github.com/delayq/delayq/internal/redisscript"
)

//go:embed lua/*.lua
var files embed.FS

// Each script has, besides the prelude, only the files that it needs.
var (
	scheduleScript   = redisscript.Load(files, "trigger", "number", "schedule")
	claimScript      = redisscript.Load(files, "message", "lease", "back", "next", "ready", "hand_out", "claim")
	takeScript       = redisscript.Load(files, "message", "lease", "next", "hand_out", "take")
	moveScript       = redisscript.Load(files, "message", "lease", "back", "next", "ready", "move")
	expireScript     = redisscript.Load(files, "message", "lease", "back", "expire")
	lookScript       = redisscript.Load(files, "look")
	ackScript        = redisscript.Load(files, "message", "lease", "forget", "ack")
	nackScript       = redisscript.Load(files, "message", "lease", "back", "headers", "trigger", "nack")
	extendScript     = redisscript.Load(files, "message", "lease", "extend")
	buryScript       = redisscript.Load(files, "message", "lease", "number", "bury")
	cancelScript     = redisscript.Load(files, "message", "lease", "back", "waiting", "forget", "cancel")
	rescheduleScript = redisscript.Load(files, "message", "lease", "back", "waiting", "trigger", "reschedule")
	statsScript      = redisscript.Load(files, "message", "lease", "back", "stats")
	listDeadScript   = redisscript.Load(files, "message", "list_dead")
	redriveScript    = redisscript.Load(files, "message", "number", "trigger", "redrive")
	deleteDeadScript = redisscript.Load(files, "forget", "delete_dead")
	peekScript       = redisscript.Load(files, "message", "lease", "back", "peek")
	purgeScript      = redisscript.Load(files, "purge")
)
