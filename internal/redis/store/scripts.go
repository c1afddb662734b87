package store

import (
	"embed"

	"github.com/delayq/delayq/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

// Each script has, besides the prelude, only the files that it needs.
var (
	scheduleScript   = script.Load(files, "trigger", "number", "schedule")
	claimScript      = script.Load(files, "paused", "message", "lease", "release", "back", "next", "ready", "hand_out", "claim")
	takeScript       = script.Load(files, "paused", "message", "lease", "next", "hand_out", "take")
	moveScript       = script.Load(files, "paused", "message", "lease", "release", "back", "next", "ready", "move")
	expireScript     = script.Load(files, "message", "lease", "release", "back", "expire")
	lookScript       = script.Load(files, "paused", "look")
	ackScript        = script.Load(files, "forget", "ack_all", "message", "lease", "ack")
	nackScript       = script.Load(files, "message", "lease", "release", "back", "headers", "trigger", "nack")
	extendScript     = script.Load(files, "message", "lease", "extend")
	deadScript       = script.Load(files, "message", "lease", "release", "number", "dead")
	cancelScript     = script.Load(files, "message", "lease", "release", "back", "waiting", "forget", "cancel")
	replaceScript    = script.Load(files, "message", "lease", "release", "back", "headers", "waiting", "number", "trigger", "replace")
	rescheduleScript = script.Load(files, "message", "lease", "release", "back", "waiting", "trigger", "reschedule")
	statsScript      = script.Load(files, "paused", "message", "lease", "release", "back", "stats")
	listDeadScript   = script.Load(files, "message", "list_dead")
	redriveScript    = script.Load(files, "message", "number", "trigger", "redrive")
	deleteDeadScript = script.Load(files, "forget", "remove_dead", "delete_dead")
	trimDeadScript   = script.Load(files, "forget", "remove_dead", "retention", "trim_dead")
	peekScript       = script.Load(files, "message", "lease", "release", "back", "peek")
	getScript        = script.Load(files, "message", "lease", "get")
	layoutScript     = script.Load(files, "layout")
	noteScript       = script.Load(files, "note")
	emptyScript      = script.Load(files, "empty")
	endPushesScript  = script.Load(files, "end_pushes")
	purgeScript      = script.Load(files, "purge")
	countScript      = script.Load(files, "count")
)
