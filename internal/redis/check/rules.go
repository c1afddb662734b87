package check

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// OldestVersion is the oldest version that can run the scripts. The scripts read the clock before
// they write, so the server must replicate a script by its effects. All commands are at least as
// old.
const OldestVersion = "5.0"

// A Finding is a problem of a server, and its remedy.
type Finding struct {
	// Warn: messages may get lost or be rejected; Info: good to know; Debug: could not be found out
	Level   slog.Level
	Problem string
	Remedy  string
}

func (f Finding) String() string { return f.Problem + "; " + f.Remedy }

// Findings applies the rules to the facts. An empty result means that all facts are known and no
// rule is broken.
func (f Facts) Findings() []Finding {
	var all []Finding
	for _, rule := range []func(Facts) (Finding, bool){tooOld, onReplica, clusterWithoutClient, evicting, withoutPersistence} {
		if found, ok := rule(f); ok {
			all = append(all, found)
		}
	}
	return all
}

const permit = "to let the check see it, allow INFO and CONFIG GET"

func tooOld(f Facts) (Finding, bool) {
	if f.Version == "" {
		return Finding{slog.LevelDebug, "the server does not tell its version", permit}, true
	}
	return Finding{
		slog.LevelWarn,
		fmt.Sprintf("Redis %s is too old: scripts that read the clock and then write fail on it", f.Version),
		"upgrade to " + OldestVersion + " or newer; Redis 7 or newer is advised, as older ones get no fixes",
	}, older(f.Version, OldestVersion)
}

// older compares two versions. A part that is no number counts as zero.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range b {
		var m, n int
		if i < len(a) {
			m, _ = strconv.Atoi(a[i])
		}
		if n, _ = strconv.Atoi(b[i]); m != n {
			return m < n
		}
	}
	return false
}

func onReplica(f Facts) (Finding, bool) {
	if f.ReadOnly == Unknown {
		return Finding{slog.LevelDebug, "the server does not tell whether it is a replica", permit}, true
	}
	master := "its master"
	if f.Master != "" {
		master += " at " + f.Master
	}
	return Finding{
		slog.LevelWarn,
		"the server is a read-only replica: it refuses every message",
		"connect to " + master + ", or through Sentinel, which follows the master",
	}, f.ReadOnly == Yes
}

func clusterWithoutClient(f Facts) (Finding, bool) {
	return Finding{
		slog.LevelWarn,
		"the server is part of a Cluster, but the client is not one of a Cluster: queues on other nodes fail with MOVED",
		"use redis.NewClusterClient, or cluster=true in the URL",
	}, f.NoClusterClient
}

func evicting(f Facts) (Finding, bool) {
	const remedy = "run CONFIG SET maxmemory-policy noeviction, and put the line \"maxmemory-policy noeviction\" into redis.conf"
	switch {
	case f.Policy == "noeviction" || f.MaxMemory == 0 && !dropsAny(f.Policy) && f.Policy != "":
		return Finding{}, false
	case f.Policy == "" || f.MaxMemory < 0:
		return Finding{slog.LevelDebug, "the server does not tell whether it evicts keys when its memory is full", permit}, true
	case !dropsAny(f.Policy):
		return Finding{slog.LevelInfo, "maxmemory-policy " + f.Policy +
			" drops keys that have an expiry: no message has one, but triggers of the keyspace backend do, whose messages then wait for its sweep, and ids that UniqueFor keeps", remedy}, true
	case f.MaxMemory == 0:
		return Finding{slog.LevelInfo, "maxmemory-policy " + f.Policy +
			" drops messages once there is a memory limit; harmless for now, as maxmemory is 0", remedy}, true
	default:
		return Finding{slog.LevelWarn, fmt.Sprintf(
			"maxmemory-policy %s drops messages without a trace when the server reaches its maxmemory of %d bytes", f.Policy, f.MaxMemory), remedy}, true
	}
}

// dropsAny reports whether a policy may evict any key. The volatile ones spare keys without an
// expiry.
func dropsAny(policy string) bool { return !strings.HasPrefix(policy, "volatile-") }

const enableAOF = "run CONFIG SET appendonly yes, and put the lines \"appendonly yes\" and \"appendfsync everysec\" into redis.conf"

func withoutPersistence(f Facts) (Finding, bool) {
	switch {
	case f.Unsaved != "":
		return Finding{slog.LevelWarn, "the server's last write to its disk failed (" + f.Unsaved + "): it refuses messages, or loses them in a crash",
			"see the server's log; mostly the disk is full, or its directory may not be written"}, true
	case f.AOF == Yes:
		return Finding{}, false
	case f.AOF == No && f.Snapshots == No:
		return Finding{slog.LevelWarn, "the server keeps nothing on disk: a restart loses every message",
			enableAOF + "; the line \"save 3600 1 300 100 60 10000\" alone loses the last minutes"}, true
	case f.AOF == No && f.Snapshots == Yes:
		return Finding{slog.LevelInfo, "the server writes snapshots only: a crash loses what came after the last one", enableAOF}, true
	default:
		return Finding{slog.LevelDebug, "the server does not tell whether it keeps messages on disk", permit}, true
	}
}
