package delayq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
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

func TestBadUniqueForIsRefused(t *testing.T) {
	type test struct {
		push        []delayq.PushOption
		what, value string
	}
	cases(t, map[string]test{
		"negative":  {[]delayq.PushOption{delayq.ID("a"), delayq.UniqueFor(-1)}, "UniqueFor", "-1ns"},
		"too short": {[]delayq.PushOption{delayq.ID("a"), delayq.UniqueFor(backend.MinUnique - 1)}, "UniqueFor", "999.999µs"},
		"too long":  {[]delayq.PushOption{delayq.ID("a"), delayq.UniqueFor(backend.MaxUnique + 1)}, "UniqueFor", "9600h0m0.000000001s"},
		"no id":     {[]delayq.PushOption{delayq.UniqueFor(time.Hour)}, "UniqueFor", "without an ID"},
	}, func(t *testing.T, tt test) {
		s := newScene(t)
		s.wantUnchanged(t, func() {
			_, err := s.Push(t.Context(), nil, tt.push...)
			wantInvalid(t, err, tt.what, tt.value)
		})
		var m delayq.Message
		for _, set := range tt.push {
			_ = set(&m) // PushBatch has to find out by itself
		}
		s.wantUnchanged(t, func() {
			_, err := s.PushBatch(t.Context(), []delayq.Message{{}, m})
			wantInvalid(t, err, tt.what, tt.value)
		})
	})
}

func TestUniqueForWhereThereIsNone(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]backend.Feature{
		"no windows": backend.UniqueWindows,
		"no own ids": backend.OwnIDs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSeam()
			s.traits = lacking(without)
			q := newQueue(t, s.option())
			_, err := q.Push(t.Context(), nil, delayq.ID("a"), delayq.UniqueFor(time.Hour))
			wantIs(t, err, delayq.ErrUnsupported)
			var unsupported *delayq.UnsupportedError
			if !errors.As(err, &unsupported) || unsupported.Backend != "memory" {
				t.Errorf("error %v does not name the backend", err)
			}
			_, err = delayq.New(t.Context(), "orders", s.option(), delayq.Require(delayq.UniqueWindows))
			wantIs(t, err, delayq.ErrUnsupported)
		})
	}
}
