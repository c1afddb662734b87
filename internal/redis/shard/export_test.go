package shard

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Settled is how long a generation refuses pushes before it ends, in tests.
const Settled = time.Second

func init() { settled, readAgain = Settled, time.Second } // so that tests need not wait

// NumberFrom returns the number of a new generation beside those of some numbers.
func NumberFrom(n int64, listed ...int64) int64 {
	gens := make([]generation, len(listed))
	for i := range gens {
		gens[i].number = listed[i]
	}
	return numberFrom(n, gens)
}

// GiveBack gives messages back that came too late.
func (q *Queue) GiveBack(ds []backend.Delivery, lease time.Duration) { q.giveBack(ds, lease) }
