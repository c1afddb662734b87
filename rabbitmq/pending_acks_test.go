package rabbitmq

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestAcksGather(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		what         string
		acks, leased int
		since        time.Duration
		hasty        bool
		want         bool
	}{
		{what: "few of many", acks: 1, leased: 31, want: true},
		{what: "the larger part", acks: 16, leased: 16},
		{what: "the only one", acks: 1},
		{what: "none", leased: 31},
		{what: "long after others", acks: 1, leased: 31, since: gatherFor},
		{what: "at the end", acks: 1, leased: 31, hasty: true},
	} {
		a := pendingAcks{confirmedAt: now.Add(-c.since), tags: tags{hasty: c.hasty, acks: make([]uint64, c.acks)}}
		if got := a.gathers(now, c.leased); got != c.want {
			t.Errorf("%s: gather %t, want %t", c.what, got, c.want)
		}
	}
}

// TestAckCallsEnd makes calls with acks that gather, wait for lower tags, are confirmed and are
// lost.
func TestAckCallsEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	leased := func(uint64) bool { return true }
	a := pendingAcks{confirmedAt: now}
	call := func(tag uint64) <-chan error {
		done := make(chan error, 1)
		a.ack(tag)
		a.calls = append(a.calls, pendingAck{tag, done})
		return done
	}
	first, third := call(1), call(3)
	if a.flush(ackLog{}, now, 5, leased); len(a.calls) != 2 || !a.next().Equal(now.Add(gatherFor)) {
		t.Fatalf("%d calls wait until %v, want both for %v", len(a.calls), a.next(), gatherFor)
	}
	now = now.Add(gatherFor)
	if a.flush(ackLog{}, now, 5, leased); len(first) != 1 || <-first != nil || len(third) != 0 {
		t.Fatal("want the first call to end without an error, and the third to wait for the second tag")
	}
	if want := now.Add(waitTurn); !a.next().Equal(want) {
		t.Errorf("acks out of order wait until %v, want %v", a.next(), want)
	}
	a.fail(errAckUnknown)
	if err := <-third; !errors.Is(err, errAckUnknown) {
		t.Errorf("the call on a lost channel got %v", err)
	}
	lost := call(2)
	a.hasty = true
	a.flush(ackLog{confirm: errGone}, now, 5, leased)
	if err := <-lost; !errors.Is(err, errAckUnknown) {
		t.Errorf("the call whose acks were not confirmed got %v", err)
	}
}

// An ackLog is a channel that takes every ack.
type ackLog struct{ confirm error }

func (ackLog) Ack(uint64, bool) error { return nil }
func (l ackLog) Confirm(bool) error   { return l.confirm }

// TestClosedLoopLeavesTakenSettlementsUnknown closes the loop after it has taken an ack, and after
// the copy of a nacked message was published. The broker may have both.
func TestClosedLoopLeavesTakenSettlementsUnknown(t *testing.T) {
	t.Parallel()
	l := &channelLoop{ended: make(chan struct{})}
	close(l.ended)
	if err := l.awaitAcks(t.Context(), make(chan error)); !errors.Is(err, backend.ErrOutcomeUnknown) || errors.Is(err, backend.ErrClosed) {
		t.Errorf("an ack got %v", err)
	}
	if err := l.finishReplace(t.Context(), nil, nil); !errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("a nack got %v", err)
	}
}
