package store

import (
	"strings"

	"github.com/delayq/delayq/backend"
)

// keys are the keys of one queue, all in one slot of a Cluster.
type keys struct {
	channel string
	trigger string
	paused  string
	counts  string
	split   string
	list    []string
}

func newKeys(prefix, queue string) keys {
	p := prefix + ":{" + queue + "}:"
	k := keys{channel: p + wakeChannel, trigger: p + triggerKey, paused: p + "paused", counts: p + countsKey, split: p + splitKey}
	for _, name := range []string{"due", "messages", "leases", "held", "gens", "dead", "graves", "seq", "ready", "unique"} {
		k.list = append(k.list, p+name)
	}
	return k
}

func (k *keys) due() string      { return k.list[0] }
func (k *keys) messages() string { return k.list[1] }
func (k *keys) leases() string   { return k.list[2] }
func (k *keys) held() string     { return k.list[3] }
func (k *keys) gens() string     { return k.list[4] }

// These follow a queue's prefix.
const (
	countsKey   = "counts"
	splitKey    = "shards"
	triggerKey  = "trigger"
	wakeChannel = "wake"
)

// Channel returns the channel where a message that becomes the first is announced, with its due
// time in ms.
func (s *Store) Channel() string { return s.keys.channel }

// KeysOf returns the keys that a queue's messages may be in, and the one that says that they are in
// shards.
func KeysOf(prefix, queue string) []string {
	k := newKeys(prefix, queue)
	return append(k.list, k.split)
}

// RegistryOf returns the key with the names of all queues of a prefix. It is no queue's key: those
// have braces.
func RegistryOf(prefix string) string { return prefix + ":queues" }

// IsCounts reports whether a key has a queue's activity. It expires an hour after the last.
func IsCounts(key string) bool { return strings.HasSuffix(key, "}:"+countsKey) }

// Owns reports whether a key is one of a queue's, or of one of its shards.
func Owns(prefix, queue, key string) bool {
	rest, ok := strings.CutPrefix(key, prefix+":{"+queue)
	return ok && (strings.HasPrefix(rest, "}:") || strings.HasPrefix(rest, "/"))
}

// IsNote reports whether a key says that a queue is split into shards, or that a shard takes no new ids.
func IsNote(key string) bool { return strings.HasSuffix(key, "}:"+splitKey) }

// Triggered returns the channel of the queue whose trigger is the key.
func Triggered(key string) (channel string, ok bool) {
	queue, ok := strings.CutSuffix(key, "}:"+triggerKey)
	return queue + "}:" + wakeChannel, ok
}

// ValidPrefix returns the error of a prefix that keys cannot have.
func ValidPrefix(p string) error {
	if p == "" || len(p) > 64 || strings.ContainsAny(p, "{}\x00") {
		return backend.Invalid("key prefix", p, "1 to 64 bytes without braces")
	}
	return nil
}
