package check

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Tristate is yes, no or unknown.
type Tristate int

// The values.
const (
	Unknown Tristate = iota
	Yes
	No
)

func yesNo(yes bool) Tristate {
	if yes {
		return Yes
	}
	return No
}

// Facts are the settings and the state of a server that messages depend on. Managed services hide
// some.
type Facts struct {
	Server    string   // host:port, for the reader
	Version   string   // "" when unknown
	MaxMemory int64    // in bytes, 0 for no limit, less than 0 when unknown
	Policy    string   // of eviction; "" when unknown
	AOF       Tristate // whether it keeps an append-only file
	Snapshots Tristate // whether it writes RDB files by itself
	Unsaved   string   // INFO's value for a save that failed; "" for none
	ReadOnly  Tristate // whether it is a replica that refuses writes
	Master    string   // host:port of its primary; "" when unknown
	Clustered Tristate // whether it is part of a Cluster
	Astray    bool     // it is, but its client knows of one server only
}

// ask reads the facts from INFO, and from CONFIG where INFO does not have them or may not be used.
func ask(ctx context.Context, client redis.Cmdable) (Facts, error) {
	pipe := client.Pipeline()
	info := pipe.Info(ctx)
	configs := []*redis.MapStringStringCmd{
		pipe.ConfigGet(ctx, "maxmemory*"), pipe.ConfigGet(ctx, "appendonly"), pipe.ConfigGet(ctx, "save"),
	}
	_, _ = pipe.Exec(ctx) // each has an error of its own
	config := make(map[string]string)
	for _, c := range configs {
		for k, v := range c.Val() {
			config[k] = v
		}
	}
	if info.Err() != nil && len(config) == 0 {
		return Facts{}, info.Err()
	}
	return factsFrom(infoFields(info.Val()), config), nil
}

// infoFields reads the lines of INFO.
func infoFields(info string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[k] = v
		}
	}
	return all
}

func factsFrom(info, config map[string]string) Facts {
	f := Facts{
		Version:   info["redis_version"],
		MaxMemory: bytesIn(firstOf(info["maxmemory"], config["maxmemory"])),
		Policy:    firstOf(info["maxmemory_policy"], config["maxmemory-policy"]),
		AOF:       flagged(firstOf(info["aof_enabled"], config["appendonly"])),
		Snapshots: snapshots(info, config),
		Unsaved:   unsaved(info),
		ReadOnly:  readOnly(info),
		Clustered: flagged(info["cluster_enabled"]),
	}
	if f.ReadOnly == Yes && info["master_host"] != "" {
		f.Master = net.JoinHostPort(info["master_host"], info["master_port"])
	}
	return f
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func bytesIn(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func flagged(s string) Tristate {
	switch s {
	case "1", "yes":
		return Yes
	case "0", "no":
		return No
	default:
		return Unknown
	}
}

// snapshots returns Unknown where INFO alone is readable and there has been no snapshot yet: one
// may come later.
func snapshots(info, config map[string]string) Tristate {
	if points, ok := config["save"]; ok {
		return yesNo(strings.TrimSpace(points) != "")
	}
	if n := bytesIn(info["rdb_saves"]); n > 0 {
		return Yes
	}
	if took := bytesIn(info["rdb_last_bgsave_time_sec"]); took >= 0 {
		return Yes
	}
	return Unknown
}

// unsaved returns the last save that failed, as INFO writes it.
func unsaved(info map[string]string) string {
	for _, save := range []string{"aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"} {
		if info[save] == "err" {
			return save + ":err"
		}
	}
	return ""
}

func readOnly(info map[string]string) Tristate {
	switch info["role"] {
	case "":
		return Unknown
	case "slave":
		return yesNo(info["slave_read_only"] != "0")
	default:
		return No
	}
}
