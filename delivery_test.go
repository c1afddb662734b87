package delayq_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// A Delivery that a user makes for a test of a handler refuses, and does not panic.
func TestDeliveryOfNoQueue(t *testing.T) {
	t.Parallel()
	ctx, d := t.Context(), &delayq.Delivery{ID: "mine"}
	wantIs(t, d.Ack(ctx), delayq.ErrInvalid)
	wantIs(t, d.Nack(ctx, time.Second), delayq.ErrInvalid)
	wantIs(t, d.Extend(ctx, time.Second), delayq.ErrInvalid)
	wantIs(t, d.DeadLetter(ctx, "reason"), delayq.ErrInvalid)
	wantIs(t, delayq.DeadLetters{}.Redrive(ctx, "mine"), delayq.ErrInvalid)
}

func TestLongReasonIsCutAtACharacter(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	pushDead(t, q, "long", "x"+strings.Repeat("ж", backend.MaxReason))
	got := deadLetters(t, q)[0].Reason
	if len(got) != backend.MaxReason-1 || !utf8.ValidString(got) {
		t.Errorf("the reason has %d bytes, valid UTF-8: %t; want %d, true", len(got), utf8.ValidString(got), backend.MaxReason-1)
	}
}

func TestBatchesHaveALimit(t *testing.T) {
	t.Parallel()
	q, ctx := newQueue(t), t.Context()
	_, err := q.PushBatch(ctx, make([]delayq.Message, delayq.MaxBatch+1))
	wantIs(t, err, delayq.ErrInvalid)
	wantIs(t, q.AckBatch(ctx, make([]*delayq.Delivery, delayq.MaxBatch+1)), delayq.ErrInvalid)
	ids := strings.Split(strings.Repeat("x ", delayq.MaxBatch)+"x", " ")
	wantIs(t, q.Dead().Redrive(ctx, ids...), delayq.ErrInvalid)
	wantCounts(t, q, delayq.Stats{})
}

func TestEmptyBatches(t *testing.T) {
	t.Parallel()
	q, ctx := newQueue(t), t.Context()
	_, err := q.PushBatch(ctx, nil)
	must(t, err)
	must(t, q.AckBatch(ctx, nil))
	must(t, q.Close())
	_, err = q.PushBatch(ctx, nil)
	wantIs(t, err, delayq.ErrClosed)
	wantIs(t, q.AckBatch(ctx, nil), delayq.ErrClosed)
}

func TestBadMessageOfABatchIsNumbered(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, err := q.PushBatch(t.Context(), []delayq.Message{{}, {}, {Delay: -1}})
	wantIs(t, err, delayq.ErrInvalid)
	if !strings.Contains(err.Error(), "message 2 of the batch: invalid delay") {
		t.Errorf("the error does not say which message: %v", err)
	}
	wantCounts(t, q, delayq.Stats{})
}

func TestSupports(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	if !q.Supports(delayq.Cancelling) || q.Supports(delayq.Durability) || q.Supports(delayq.Feature(99)) {
		t.Error("memory cancels, is not durable, and has no feature 99")
	}
	if got := delayq.Feature(99).String(); got != "Feature(99)" {
		t.Errorf("Feature(99).String() is %q", got)
	}
}
