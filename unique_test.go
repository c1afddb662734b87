package delayq_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
)

func TestUniqueForKeepsTheIDTaken(t *testing.T) {
	t.Parallel()
	clock := clockwork.NewFakeClock()
	q := newQueue(t, delayq.WithClock(clock))
	push(t, q, delayq.ID("report"), delayq.UniqueFor(time.Hour))
	must(t, receive(t, q).Ack(t.Context()))
	clock.Advance(time.Hour - 1)
	_, err := q.Push(t.Context(), nil, delayq.ID("report"))
	wantIs(t, err, delayq.ErrDuplicate)
	_, err = q.PushBatch(t.Context(), []delayq.Message{{ID: "report", UniqueFor: time.Minute}})
	wantIs(t, err, delayq.ErrDuplicate)
	clock.Advance(1)
	push(t, q, delayq.ID("report"))
}
