package redisson

import "strings"

// names are the keys of Redisson for a queue. The destination's is the queue's own,
// with all that a name mapper puts around it.
type names struct {
	destination string // list of payloads that are due
	timeouts    string // zset of members, the score is the due time in ms
	index       string // list of the same members in the order of the offers
	channel     string // announces the due time of a new head
}

func namesOf(destination string) names {
	return names{
		destination: destination,
		timeouts:    keyName("redisson_delay_queue_timeout", destination),
		index:       keyName("redisson_delay_queue", destination),
		channel:     keyName("redisson_delay_queue_channel", destination),
	}
}

// keys are the three that a script takes; the channel is none.
func (n names) keys() []string { return []string{n.destination, n.timeouts, n.index} }

// keyName is Redisson's rule to the letter: any opening brace counts, whether or not it makes a
// hash tag. See sameSlot for the consequences.
func keyName(prefix, name string) string {
	if strings.Contains(name, "{") {
		return prefix + ":" + name
	}
	return prefix + ":{" + name + "}"
}
