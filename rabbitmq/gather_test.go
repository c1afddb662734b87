package rabbitmq

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// Acks wait for company that is likely, for as long as was said, and not at the end.
func TestAcksGather(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		what         string
		acks, leased int
		since        time.Duration
		hasty, lost  bool
		want         bool
	}{
		{what: "few of many", acks: 1, leased: 31, want: true},
		{what: "the larger part", acks: 16, leased: 16},
		{what: "the only one", acks: 1},
		{what: "none", leased: 31},
		{what: "long after others", acks: 1, leased: 31, since: gatherFor},
		{what: "at the end", acks: 1, leased: 31, hasty: true},
		{what: "on a channel that was lost", acks: 1, leased: 31, lost: true},
	} {
		d := &desk{ch: new(amqp.Channel), toldAt: now.Add(-c.since), leased: make(map[backend.Token]*holding), tags: tags{hasty: c.hasty, acks: make([]uint64, c.acks)}}
		for i := range c.leased {
			d.leased[backend.Token{Lo: uint64(i)}] = new(holding)
		}
		if c.lost {
			d.ch = nil
		}
		if got := d.gathers(now); got != c.want {
			t.Errorf("%s: gather %t, want %t", c.what, got, c.want)
		}
	}
}
