package delayq_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

// scripted is a source whose numbers repeat. rand.Int64N takes the high bits, roughly.
type scripted []uint64

func (s *scripted) Uint64() uint64 {
	n := (*s)[0]
	*s = append((*s)[1:], n)
	return n
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// spreads pushes the messages, singly and in a batch, and returns how much later than noon they are
// due.
func spreads(t *testing.T, random delayq.Option, m delayq.Message, n int) (late []time.Duration) {
	t.Helper()
	q := newQueue(t, delayq.WithClock(clockwork.NewFakeClockAt(noon)), random)
	for range n {
		push(t, q, func(to *delayq.Message) error { to.Due, to.Delay = m.Due, m.Delay; return nil }, delayq.Spread(m.Spread))
	}
	batch := slices.Repeat([]delayq.Message{m}, n)
	_, err := q.PushBatch(t.Context(), batch)
	must(t, err)
	if batch[0].Spread != m.Spread || !batch[0].Due.Equal(m.Due) || batch[0].Delay != m.Delay {
		t.Errorf("PushBatch changed its argument to %+v", batch[0])
	}
	page, _, err := q.Peek(t.Context(), "", 2*n)
	must(t, err)
	for _, p := range page {
		late = append(late, p.Due.Sub(noon))
	}
	if len(late) != 2*n {
		t.Fatalf("%d of %d messages wait", len(late), 2*n)
	}
	return late
}

func seeded() delayq.Option { return delayq.WithRandom(rand.NewPCG(1, 2)) }

func TestSpreadStaysInItsBounds(t *testing.T) {
	const at, spread, n = time.Hour, 10 * time.Minute, 1000
	queuetest.Cases(t, map[string]delayq.Message{
		"After": {Delay: at, Spread: spread},
		"At":    {Due: noon.Add(at), Spread: spread},
	}, func(t *testing.T, m delayq.Message) {
		late := spreads(t, seeded(), m, n)
		for _, d := range late {
			if d < at || d > at+spread {
				t.Fatalf("a message is due after %v, want %v to %v", d, at, at+spread)
			}
		}
		// of 2,000 uniform parts, each tenth gets 200 give or take 13
		for tenth := range 10 {
			from := at + time.Duration(tenth)*spread/10
			got := len(slices.DeleteFunc(slices.Clone(late), func(d time.Duration) bool { return d < from || d >= from+spread/10 }))
			if got < 120 || got > 280 {
				t.Errorf("%d messages are due in tenth %d of the spread, want about 200", got, tenth)
			}
		}
	})
}

// The random part is 0 to d, both included.
func TestSpreadReachesBothEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := scripted{0, 1<<64 - 1}
		late := spreads(t, delayq.WithRandom(&source), delayq.Message{Delay: time.Hour, Spread: 7}, 1)
		if want := []time.Duration{time.Hour, time.Hour + 7}; !slices.Equal(late, want) {
			t.Errorf("due after %v, want %v", late, want)
		}
	})
}

func TestSpreadRepeatsWithItsSource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := delayq.Message{Spread: time.Hour}
		first, second := spreads(t, seeded(), m, 20), spreads(t, seeded(), m, 20)
		if !slices.Equal(first, second) {
			t.Errorf("one source gave %v, then %v", first, second)
		}
		if other := spreads(t, delayq.WithRandom(rand.NewPCG(3, 4)), m, 20); slices.Equal(first, other) {
			t.Errorf("two sources gave %v", other)
		}
		unseeded := func() []time.Duration { return spreads(t, delayq.WithLease(time.Minute), m, 20) }
		if slices.Equal(unseeded(), unseeded()) {
			t.Error("without a source, two queues spread alike")
		}
	})
}

func TestSpreadOfNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, d := range spreads(t, seeded(), delayq.Message{Delay: time.Minute}, 10) {
			if d != time.Minute {
				t.Errorf("without a spread a message is due after %v", d)
			}
		}
	})
}

// The largest sum of delay and spread is the longest delay, also where the store has its own.
func TestSpreadWithinTheStoresDelay(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = func(tr *backend.Traits) { tr.MaxDelay = time.Hour }
	q := newQueue(t, s.option())
	push(t, q, delayq.After(30*time.Minute), delayq.Spread(30*time.Minute))
	_, err := q.Push(t.Context(), nil, delayq.After(30*time.Minute), delayq.Spread(30*time.Minute+1))
	wantInvalid(t, err, "delay", "1h0m0.000000001s")
	if n, _ := s.calls("schedule"); n != 1 {
		t.Errorf("%d calls of the store, want 1", n)
	}
}

// A source is used by one goroutine at a time.
func TestSpreadFromManyGoroutines(t *testing.T) {
	t.Parallel()
	q := newQueue(t, seeded())
	done := make(chan error)
	for range 8 {
		go func() {
			for range 100 {
				if _, err := q.Push(t.Context(), nil, delayq.Spread(time.Hour)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		must(t, <-done)
	}
}

// An Expires that part of the spread lies beyond would lose messages at random.
func TestExpiresWithinTheSpread(t *testing.T) {
	t.Parallel()
	q, err := delayq.New(t.Context(), "q", delayq.InMemory())
	must(t, err)
	defer func() { must(t, q.Close()) }()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	_, err = q.Push(t.Context(), nil, delayq.At(noon), delayq.Spread(time.Hour), delayq.Expires(noon.Add(time.Minute)))
	if !errors.Is(err, delayq.ErrInvalid) {
		t.Errorf("an Expires within the spread: got %v", err)
	}
	_, err = q.Push(t.Context(), nil, delayq.At(noon), delayq.Spread(time.Hour), delayq.Expires(noon.Add(time.Hour)))
	must(t, err)
}
