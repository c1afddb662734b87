package check

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// well is a server about which there is nothing to say.
func well(change ...func(*Facts)) Facts {
	f := Facts{
		Server: "one:6379", Version: "7.2.4", Policy: "noeviction", AOF: Yes, Snapshots: Yes, ReadOnly: No, Clustered: No,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func TestFindings(t *testing.T) {
	t.Parallel()
	const evict = `; run CONFIG SET maxmemory-policy noeviction, and put the line "maxmemory-policy noeviction" into redis.conf`
	const aof = `; run CONFIG SET appendonly yes, and put the lines "appendonly yes" and "appendfsync everysec" into redis.conf`
	const allow = "; to let the check see it, allow INFO and CONFIG GET"
	for name, tt := range map[string]struct {
		facts Facts
		level slog.Level
		want  string // "" for nothing
	}{
		"well":            {facts: well()},
		"limit, no drops": {facts: well(func(f *Facts) { f.MaxMemory = 1 << 20 })},
		"allkeys-lru": {
			well(func(f *Facts) { f.MaxMemory, f.Policy = 1<<20, "allkeys-lru" }), slog.LevelWarn,
			"maxmemory-policy allkeys-lru drops messages without a trace when the server reaches its maxmemory of 1048576 bytes" + evict,
		},
		"a policy of the future": {
			well(func(f *Facts) { f.MaxMemory, f.Policy = 5, "allkeys-lrm" }), slog.LevelWarn,
			"maxmemory-policy allkeys-lrm drops messages without a trace when the server reaches its maxmemory of 5 bytes" + evict,
		},
		"allkeys-lru without a limit": {
			well(func(f *Facts) { f.Policy = "allkeys-lru" }), slog.LevelInfo,
			"maxmemory-policy allkeys-lru drops messages once there is a memory limit; harmless for now, as maxmemory is 0" + evict,
		},
		"volatile-lru": {
			well(func(f *Facts) { f.MaxMemory, f.Policy = 1<<20, "volatile-lru" }), slog.LevelInfo,
			"maxmemory-policy volatile-lru drops keys that have an expiry: no message has one, " +
				"but triggers of the keyspace backend do, whose messages then wait for its sweep, and ids that UniqueFor keeps" + evict,
		},
		"volatile-lru without a limit": {facts: well(func(f *Facts) { f.Policy = "volatile-lru" })},
		"policy unknown": {
			well(func(f *Facts) { f.Policy = "" }), slog.LevelDebug,
			"the server does not tell whether it evicts keys when its memory is full" + allow,
		},
		"limit unknown": {
			well(func(f *Facts) { f.Policy, f.MaxMemory = "allkeys-lru", -1 }), slog.LevelDebug,
			"the server does not tell whether it evicts keys when its memory is full" + allow,
		},
		"limit unknown, no drops": {facts: well(func(f *Facts) { f.MaxMemory = -1 })},
		"nothing on disk": {
			well(func(f *Facts) { f.AOF, f.Snapshots = No, No }), slog.LevelWarn,
			"the server keeps nothing on disk: a restart loses every message" + aof + `; the line "save 3600 1 300 100 60 10000" alone loses the last minutes`,
		},
		"snapshots only": {
			well(func(f *Facts) { f.AOF = No }), slog.LevelInfo,
			"the server writes snapshots only: a crash loses what came after the last one" + aof,
		},
		"AOF only": {facts: well(func(f *Facts) { f.Snapshots = No })},
		"a save failed": {
			well(func(f *Facts) { f.Unsaved = "rdb_last_bgsave_status:err" }), slog.LevelWarn,
			"the server's last write to its disk failed (rdb_last_bgsave_status:err): it refuses messages, or loses them in a crash; " +
				"see the server's log; mostly the disk is full, or its directory may not be written",
		},
		"snapshots unknown": {
			well(func(f *Facts) { f.AOF, f.Snapshots = No, Unknown }), slog.LevelDebug,
			"the server does not tell whether it keeps messages on disk" + allow,
		},
		"too old": {
			well(func(f *Facts) { f.Version = "4.0.14" }), slog.LevelWarn,
			"Redis 4.0.14 is too old: scripts that read the clock and then write fail on it; " +
				"upgrade to 5.0 or newer; Redis 7 or newer is advised, as older ones get no fixes",
		},
		"old enough": {facts: well(func(f *Facts) { f.Version = "5.0.0" })},
		"much newer": {facts: well(func(f *Facts) { f.Version = "10.1" })},
		"version unknown": {
			well(func(f *Facts) { f.Version = "" }), slog.LevelDebug, "the server does not tell its version" + allow,
		},
		"replica": {
			well(func(f *Facts) { f.ReadOnly, f.Master = Yes, "two:6379" }), slog.LevelWarn,
			"the server is a read-only replica: it refuses every message; " +
				"connect to its master at two:6379, or through Sentinel, which follows the master",
		},
		"role unknown": {
			well(func(f *Facts) { f.ReadOnly = Unknown }), slog.LevelDebug, "the server does not tell whether it is a replica" + allow,
		},
		"a Cluster":        {facts: well(func(f *Facts) { f.Clustered = Yes })},
		"Cluster unknown":  {facts: well(func(f *Facts) { f.Clustered = Unknown })},
		"one of a Cluster": {well(func(f *Facts) { f.NoClusterClient = true }), slog.LevelWarn, clusterText},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.facts.Findings()
			switch {
			case tt.want == "" && len(got) == 0:
			case len(got) != 1 || got[0].String() != tt.want || got[0].Level != tt.level:
				t.Errorf("got %+v\nwant %s %q", got, tt.level, tt.want)
			}
		})
	}
}

const clusterText = "the server is part of a Cluster, but the client is not one of a Cluster: queues on other nodes fail with MOVED; " +
	"use redis.NewClusterClient, or cluster=true in the URL"

func TestFindingsAreAllReported(t *testing.T) {
	t.Parallel()
	bad := Facts{Version: "3.2", MaxMemory: 9, Policy: "allkeys-random", AOF: No, Snapshots: No, ReadOnly: Yes, NoClusterClient: true}
	if got := bad.Findings(); len(got) != 5 {
		t.Errorf("got %d findings, want 5: %v", len(got), got)
	}
}

func TestFactsFromServers(t *testing.T) {
	t.Parallel()
	const info = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory:1024\r\nmaxmemory_policy:allkeys-lfu\r\n" +
		"aof_enabled:0\r\nrdb_saves:0\r\nrdb_last_bgsave_time_sec:-1\r\nrole:master\r\ncluster_enabled:1\r\n"
	for name, tt := range map[string]struct {
		info   string
		config map[string]string
		want   Facts
	}{
		"both": {info, map[string]string{"save": "3600 1", "appendonly": "no"}, Facts{
			Version: "7.0.15", MaxMemory: 1024, Policy: "allkeys-lfu", AOF: No, Snapshots: Yes, ReadOnly: No, Clustered: Yes,
		}},
		"no save points": {info, map[string]string{"save": ""}, Facts{
			Version: "7.0.15", MaxMemory: 1024, Policy: "allkeys-lfu", AOF: No, Snapshots: No, ReadOnly: No, Clustered: Yes,
		}},
		"CONFIG refused": {info, nil, Facts{
			Version: "7.0.15", MaxMemory: 1024, Policy: "allkeys-lfu", AOF: No, Snapshots: Unknown, ReadOnly: No, Clustered: Yes,
		}},
		"CONFIG refused, has saved": {"rdb_last_bgsave_time_sec:0\r\nmaxmemory:0\r\n", nil, Facts{Snapshots: Yes}},
		"CONFIG refused, saves":     {"rdb_saves:3\r\nmaxmemory:0\r\n", nil, Facts{Snapshots: Yes}},
		"INFO refused": {"", map[string]string{"save": "", "appendonly": "yes", "maxmemory": "0", "maxmemory-policy": "noeviction"}, Facts{
			Policy: "noeviction", AOF: Yes, Snapshots: No,
		}},
		"replica": {"role:slave\r\nslave_read_only:1\r\nmaster_host:::1\r\nmaster_port:6380\r\nmaxmemory:0\r\n", nil, Facts{
			ReadOnly: Yes, Master: "[::1]:6380",
		}},
		"replica that takes writes": {"role:slave\r\nslave_read_only:0\r\nmaster_host:two\r\nmaxmemory:0\r\n", nil, Facts{ReadOnly: No}},
		"nothing":                   {"", nil, Facts{MaxMemory: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := factsFrom(infoFields(tt.info), tt.config); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// since has for each command that the scripts may use the version that brought it in the form they
// use.
var since = map[string]string{
	"DEL": "1.0", "EXISTS": "1.0", "INCR": "1.0", "LINDEX": "1.0", "LLEN": "1.0", "LPOP": "1.0", "LPUSH": "1.0", "LRANGE": "1.0",
	"LREM": "1.0", "LTRIM": "1.0", "RPOP": "1.0", "RPUSH": "1.0", "ZADD": "3.0.2", "ZCARD": "1.2", "ZRANGE": "1.2", "ZREM": "1.2", "ZREMRANGEBYRANK": "2.0",
	"ZSCORE": "1.2", "ZRANGEBYSCORE": "2.0", "ZCOUNT": "2.0", "HDEL": "2.0", "HEXISTS": "2.0", "HGET": "2.0", "HGETALL": "2.0", "HINCRBY": "2.0",
	"HLEN": "2.0", "HSTRLEN": "3.2", "HMGET": "2.0", "HSETNX": "2.0", "HSET": "4.0", "PUBLISH": "2.0", "PEXPIRE": "2.6", "PTTL": "2.6", "SET": "2.6.12",
	"TIME":   OldestVersion, // before a write
	"INCRBY": "1.0", "LINSERT": "2.2",
	"ZINCRBY": "1.2", "ZRANK": "2.0", "ZREVRANGE": "1.2", "EXPIRE": "1.0", "PERSIST": "2.2", "UNLINK": "4.0", "TYPE": "1.0", "GET": "1.0",
}

func TestScriptsRunOnTheOldestVersion(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, dir := range []string{"../script/lua", "../store/lua", "../../../redisson/lua"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d scripts, %v", dir, len(found), err)
		}
		scripts = append(scripts, found...)
	}
	calls := regexp.MustCompile(`redis\.call\(\s*['"](\w+)['"]|\b(?:on|hint)\(\s*['"](\w+)['"]`)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range calls.FindAllStringSubmatch(string(text), -1) {
			checkSince(t, script, strings.ToUpper(call[1]+call[2]))
		}
	}
}

func checkSince(t *testing.T, script, command string) {
	t.Helper()
	if v := since[command]; v == "" {
		t.Errorf("%s uses %s: which version of Redis has it, in this form?", script, command)
	} else if older(OldestVersion, v) {
		t.Errorf("%s uses %s, which is from %s; OldestVersion is %s", script, command, v, OldestVersion)
	}
}
