package rabbitmq

import (
	"fmt"
	"strings"
)

// version is in every name. Arguments of a queue cannot change, so another topology needs other
// names.
const version = "v1"

// names returns the names of a namespace's exchanges and queues.
type names struct{ prefix string }

// deliver is the exchange at the end of the levels, to which each queue is bound. A message without
// a binding there goes to undeliverable.
func (n names) deliver() string       { return n.prefix + ".deliver" }
func (n names) undeliverable() string { return n.prefix + ".undeliverable" }

// level is the exchange that the queues of a level lead to. levelQueue is the queue of a digit. The
// levels of earlier versions had digits of other widths and were called l, so that old and new code
// do not meet there.
func (n names) level(set string, k int) string { return fmt.Sprintf("%s.%sw%d", n.prefix, set, k) }

func (n names) levelQueue(set string, k, digit int) string {
	return fmt.Sprintf("%s.%sw%d.%x", n.prefix, set, k, digit)
}

// bucket is the queue of a delay.
func (n names) bucket(ms int64) string { return fmt.Sprintf("%s.b%d", n.prefix, ms) }

func (n names) queue(name string) string { return n.prefix + ".q." + name }
func (n names) dead(name string) string  { return n.prefix + ".dead." + name }

func (n names) lock(name string) string { return n.prefix + ".lock." + name }

// reserved is the prefix of a message's further routing keys. The default exchange takes every key
// for the name of a queue. Clients cannot declare a queue with this prefix, so the keys never reach
// another program's queue.
const reserved = "amq."

// keyOf returns the routing key of a queue. A topic exchange matches keys word by word, and a dot
// would begin another word. Names have no slash, so two names have two keys, and none is a [hop].
func keyOf(name string) string { return reserved + "/" + strings.ReplaceAll(name, ".", "/") }
