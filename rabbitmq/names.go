package rabbitmq

import (
	"fmt"
	"strings"
)

// version is in every name: arguments of a queue cannot change, so another topology gets other names.
const version = "v1"

// names are what a namespace's exchanges and queues are called.
type names struct{ prefix string }

func namesOf(namespace string) names { return names{namespace + "." + version} }

// deliver is where the levels end and each queue is bound; what is bound nowhere goes to undeliverable.
func (n names) deliver() string       { return n.prefix + ".deliver" }
func (n names) undeliverable() string { return n.prefix + ".undeliverable" }

// level is the exchange that the queues of a level lead to, and levelQueue where messages with a digit wait. Levels of before, with digits of other widths, were called l: those on old code and on new do not meet there.
func (n names) level(set string, k int) string { return fmt.Sprintf("%s.%sw%d", n.prefix, set, k) }

func (n names) levelQueue(set string, k, digit int) string {
	return fmt.Sprintf("%s.%sw%d.%x", n.prefix, set, k, digit)
}

// bucket is where messages of one delay wait.
func (n names) bucket(ms int64) string { return fmt.Sprintf("%s.b%d", n.prefix, ms) }

func (n names) queue(name string) string { return n.prefix + ".q." + name }
func (n names) dead(name string) string  { return n.prefix + ".dead." + name }

func (n names) lock(name string) string { return n.prefix + ".lock." + name }

// reserved begins the keys that a message takes along. The default exchange, where it is published, takes every key for the name of a
// queue. Clients cannot declare a queue of such a name, so the further keys never reach another program's queue.
const reserved = "amq."

// keyOf is the routing key of a queue. A topic exchange looks a key up word by word, and a dot would begin another. Names have no slash, so
// two names have two keys, and none is a [hop].
func keyOf(name string) string { return reserved + oldKeyOf(name) }

// oldKeyOf is the key that earlier versions gave a queue. Messages with it may still be in the levels.
func oldKeyOf(name string) string { return "/" + strings.ReplaceAll(name, ".", "/") }
