package redisson

import (
	"embed"
	"slices"

	"github.com/delayq/delayq/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

// Setting up what a script does not use would be a large part of the time of a small one, so each
// has the files that it needs.
var (
	messages = []string{"member", "state", "times", "put_back", "held", "lease"}
	waiting  = append(slices.Clip(messages), "ended", "find", "index", "destination")

	scheduleScript   = script.Load(files, "member", "state", "times", "held", "find", "wrong_type", "schedule")
	claimScript      = load(waiting, "claim")
	maintainScript   = load(waiting, "maintain")
	ackScript        = script.Load(files, "held", "ack")
	nackScript       = load(messages, "nack")
	extendScript     = script.Load(files, "times", "held", "extend")
	deadScript       = load(messages, "dead")
	cancelScript     = load(waiting, "find_waiting", "cancel")
	rescheduleScript = load(waiting, "find_waiting", "reschedule")
	statsScript      = load(waiting, "stats")
	listDeadScript   = load(messages, "list_dead")
	redriveScript    = load(messages, "redrive")
	deleteDeadScript = load(messages, "delete_dead")
	restoreScript    = load(messages, "restore")
	pendingScript    = load(messages, "ended", "pending")
	peekScript       = load(waiting, "peek")
	purgeScript      = script.Load(files, "purge")
	typesScript      = script.Load(files, "wrong_type", "types")
)

func load(shared []string, names ...string) *script.Script {
	return script.Load(files, slices.Concat(shared, names)...)
}
