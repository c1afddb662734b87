package redisson

import (
	"embed"
	"slices"

	"github.com/delayq/delayq/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

// Definitions that a script does not use would take a large part of the time of a small one, so
// each script has only the files that it needs.
var (
	leased  = []string{"budget", "member", "state", "times", "put_back", "held", "lease"}
	waiting = append(slices.Clip(leased), "ended", "find", "index", "destination")

	scheduleScript   = script.Load(files, "member", "state", "times", "held", "find", "number", "wrong_type", "schedule")
	claimScript      = load(waiting, "number", "tidy", "paused", "claim")
	maintainScript   = load(waiting, "tidy", "maintain")
	ackScript        = script.Load(files, "budget", "held", "again", "tidy", "ack")
	nackScript       = load(leased, "again", "nack")
	extendScript     = script.Load(files, "budget", "times", "held", "extend")
	deadScript       = load(leased, "number", "again", "dead")
	cancelScript     = load(waiting, "place", "find_waiting", "tidy", "cancel")
	rescheduleScript = load(waiting, "place", "find_waiting", "reschedule")
	statsScript      = load(waiting, "paused", "stats")
	listDeadScript   = script.Load(files, "list_dead")
	redriveScript    = load(leased, "number", "redrive")
	deleteDeadScript = script.Load(files, "tidy", "delete_letters", "delete_dead")
	trimDeadScript   = script.Load(files, "tidy", "delete_letters", "retention", "trim_dead")
	restoreScript    = load(leased, "tidy", "restore")
	pendingScript    = load(leased, "ended", "pending")
	peekScript       = load(waiting, "peek")
	getScript        = script.Load(files, "budget", "member", "held", "find", "place", "get")
	purgeScript      = script.Load(files, "purge")
	typesScript      = script.Load(files, "wrong_type", "types")
)

func load(shared []string, names ...string) *script.Script {
	return script.Load(files, slices.Concat(shared, names)...)
}
