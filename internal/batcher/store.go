package batcher

import (
	"maps"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// A Store has the batchers of one queue of a store.
type Store struct {
	Pushes *Batcher[backend.Message]
	Acks   *Batcher[backend.Lease]
	Nacks  *Batcher[backend.Return]
}

// How many calls may be in flight before others wait for one of them. With few, two callers on a
// long round trip wait for each other, and each gets half of what it had alone. With many, batches
// are smaller, and workers that settle apart are idle apart: each claim then takes fewer messages.
const (
	pushCalls   = 4
	settleCalls = 2
)

// ForStore returns the batchers of a queue, for up to maxItems items in one call.
func ForStore(q backend.Queue, maxItems int, cost backend.CallCost) Store {
	direct := cost == backend.NoRoundTrip
	return Store{
		Pushes: New(Config[backend.Message]{
			Send:  q.Schedule,
			Size:  func(m backend.Message) int { return len(m.Body) + valid.HeaderBytes(m.Headers) },
			Copy:  copyMessage,
			Calls: pushCalls, Widen: cost == backend.RoundTrip, Gather: cost == backend.Transaction, MaxItems: maxItems, Direct: direct,
		}),
		Acks: New(Config[backend.Lease]{Send: q.Ack, Calls: settleCalls, MaxItems: maxItems, Direct: direct}),
		Nacks: New(Config[backend.Return]{
			Send:  q.Nack,
			Size:  func(r backend.Return) int { return valid.HeaderBytes(r.Headers) },
			Copy:  copyReturn,
			Calls: settleCalls, MaxItems: maxItems, Direct: direct,
		}),
	}
}

func copyMessage(m backend.Message) backend.Message {
	m.Body, m.Headers = append([]byte(nil), m.Body...), maps.Clone(m.Headers)
	return m
}

func copyReturn(r backend.Return) backend.Return {
	r.Headers = maps.Clone(r.Headers)
	return r
}
