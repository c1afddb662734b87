package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

const (
	// oneDigit is a delay of one digit, and oneDigitName the name of its queue and exchange.
	oneDigit     = 0x280 * time.Millisecond
	oneDigitName = "delayq.v1.w1.a"
)

// digitParts are the parts of the topology that a push with the delay oneDigit needs.
var digitParts = map[string]func(*testing.T, *amqp.Channel){
	"exchange": func(t *testing.T, ch *amqp.Channel) {
		t.Helper()
		must(t, ch.ExchangeDelete(oneDigitName, false, false))
	},
	"binding": func(t *testing.T, ch *amqp.Channel) {
		t.Helper()
		must(t, ch.QueueUnbind(oneDigitName, "", oneDigitName, nil))
	},
	"queue": func(t *testing.T, ch *amqp.Channel) {
		t.Helper()
		deleteQueue(t, ch, oneDigitName)
	},
}

// TestPushesAfterDigitDeleted deletes a part, and then pushes from several goroutines at once. All
// pushes succeed, and each message comes once.
func TestPushesAfterDigitDeleted(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const pushers, n = 8, 50
	url := vhost(t)
	ctx := deadline(t, patience)
	q, ch := open(t, url), channel(t, url)
	for what, remove := range digitParts {
		for _, delay := range []time.Duration{0, oneDigit} { // without and with an open channel to the exchange
			must(t, q.Schedule(ctx, message("before", delay))...)
			drain(ctx, t, q, 1)
			remove(t, ch)
			var calls sync.WaitGroup
			for p := range pushers {
				calls.Go(func() {
					if err := errors.Join(q.Schedule(ctx, batch(fmt.Sprint(what, p), n, oneDigit))...); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				})
			}
			calls.Wait()
			drain(ctx, t, q, pushers*n)
		}
	}
	wantNoMessage(t, q, 2*oneDigit)
}

// TestDigitDeletedAgain removes a part again and again while the topology is declared for a push,
// until that was begun three times. The push succeeds, and its message is there once.
func TestDigitDeletedAgain(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const grain, digit = time.Minute, "delayq.v1.g60000.w0.1" // a push that was late keeps its one digit
	url := vhost(t)
	ctx := deadline(t, patience)
	b, ch := newBackend(t, url, rabbitmq.Grain(grain)), channel(t, url)
	var log logBuffer
	q := openLogging(t, b, queueOf(t), &log)
	unbind := func() { must(t, ch.QueueUnbind(digit, "", digit, nil)) }
	for what, remove := range map[string]func(){
		"the binding":                       unbind,
		"an exchange before it has a queue": func() { must(t, ch.ExchangeDelete(undeliverable, false, false)) },
	} {
		begun := func() int { return strings.Count(log.String(), "declaring all of it again") }
		before, begunBefore := ready(t, ch, digit), begun()
		unbind()
		pushed := make(chan error, 1)
		go func() { pushed <- errors.Join(q.Schedule(ctx, message("a", grain))...) }()
		for begun() < begunBefore+3 && len(pushed) == 0 {
			remove()
		}
		if err := <-pushed; err != nil {
			t.Errorf("%s: %v", what, err)
		} else if n := ready(t, ch, digit) - before; n != 1 {
			t.Errorf("%s: %d more messages wait in %s, want 1", what, n, digit)
		}
	}
}

// TestDigitOfAnotherKind replaces the exchange of a digit by one of another kind. The error of a push
// names it and gives a remedy. Once the exchange is deleted, pushes succeed.
func TestDigitOfAnotherKind(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	url := vhost(t)
	ctx := deadline(t, patience)
	q, ch := open(t, url), channel(t, url)
	must(t, ch.ExchangeDelete(oneDigitName, false, false))
	must(t, ch.ExchangeDeclare(oneDigitName, "direct", true, false, false, false, nil))
	err := q.Schedule(ctx, message("a", oneDigit))[0]
	wantError(t, err, oneDigitName, "inequivalent arg 'type'", "delete it")
	if !errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("%v does not match ErrOutcomeUnknown", err)
	}
	must(t, ch.ExchangeDelete(oneDigitName, false, false))
	must(t, q.Schedule(ctx, message("b", oneDigit))...)
	ack(ctx, t, q, receiveOne(ctx, t, q, "b"))
}

// TestDigitDeletedUnderPushes deletes the exchange of a digit, or its binding, under several
// goroutines that push. No push fails with a known outcome. A push through a deleted exchange may
// have an unknown outcome, and other pushes have none. Each message that the broker has confirmed
// comes once.
func TestDigitDeletedUnderPushes(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const deletions = 5
	for _, what := range []string{"exchange", "binding"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := vhost(t)
			ctx := deadline(t, patience)
			ps, ch := newPushers(ctx, t, open(t, url), what == "exchange"), channel(t, url)
			worker := open(t, url)
			ps.awaitCalls(t)
			for range deletions {
				digitParts[what](t, ch)
				ps.awaitCalls(t)
			}
			ps.wantOnce(ctx, t, worker)
		})
	}
}

// TestDigitDeletedAtTheLimit deletes parts where the broker accepts no further connection to declare
// them again.
func TestDigitDeletedAtTheLimit(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server, name := sharedVhost(t)
	url := server.VhostURL(name)
	ctx := deadline(t, patience)
	q, ch := open(t, url), channel(t, url)
	server.Ctl("set_vhost_limits", "-p", name, `{"max-connections":3}`)
	if _, err := amqp.Dial(url); err == nil {
		t.Fatal("the broker accepts a fourth connection")
	}
	for what, remove := range digitParts {
		remove(t, ch)
		if err := q.Schedule(ctx, message(what, oneDigit))[0]; err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		drain(ctx, t, q, 1) // the handle relies on the exchange for some milliseconds
	}
}

// TestDigitThatDoesNotFormAgain has the broker return an internal error, as takeProcessName says, when
// the deleted queue of a digit is declared again for a push. Such an error closes the connection.
// Every push succeeds, those under way through other queues too, and each message comes once.
func TestDigitThatDoesNotFormAgain(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server, name := sharedVhost(t)
	url := server.VhostURL(name)
	ctx := deadline(t, patience)
	q, worker := open(t, url), open(t, url)
	deleteQueue(t, channel(t, url), oneDigitName)
	server.Eval(fmt.Sprintf(takeProcessName, name, oneDigitName))
	ps := newPushers(ctx, t, q, false)
	ps.awaitCalls(t)
	ps.wantOnce(ctx, t, worker)
	if out := server.Eval(fmt.Sprintf(`application:get_env(rabbit, '%s_%s').`, name, oneDigitName)); !strings.Contains(out, "failed") {
		t.Errorf("no declaration failed: %s", out)
	}
}

// wantOnlyUnknown takes messages until none comes. Each must be one of those with an unknown
// outcome, and come once.
func wantOnlyUnknown(t *testing.T, q backend.Queue, unknown map[string]bool) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*oneDigit)
		ds, err := q.Receive(ctx, 100, time.Minute)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		must(t, err)
		for _, d := range ds {
			if !unknown[d.ID] {
				t.Errorf("%s comes twice, or was rejected", d.ID)
			}
			delete(unknown, d.ID)
		}
		ack(deadline(t, patience), t, q, ds...)
	}
}

// pushers push all the time, some with the delay oneDigit and some with others.
type pushers struct {
	running sync.WaitGroup
	ended   atomic.Bool
	calls   [6]atomic.Int64

	mu              sync.Mutex
	pushed, unknown map[string]bool // by id
}

// newPushers starts pushers. With mayBeUnknown, pushes of oneDigit may have an unknown outcome.
func newPushers(ctx context.Context, t *testing.T, q backend.Queue, mayBeUnknown bool) *pushers {
	t.Helper()
	ps := &pushers{pushed: make(map[string]bool), unknown: make(map[string]bool)}
	for p := range ps.calls {
		delay := oneDigit
		if p%3 == 2 {
			delay = []time.Duration{0, oneDigit + 5*time.Millisecond}[p/3]
		}
		ps.running.Go(func() {
			for !ps.ended.Load() && !t.Failed() {
				ms := batch(fmt.Sprint(p, "-", ps.calls[p].Load()), 10, delay)
				errs := q.Schedule(ctx, ms)
				ps.mu.Lock()
				for i, m := range ms {
					switch {
					case errs[i] == nil:
						ps.pushed[m.ID] = true
					case mayBeUnknown && delay == oneDigit && errors.Is(errs[i], backend.ErrOutcomeUnknown):
						ps.unknown[m.ID] = true
					default:
						t.Errorf("a push with a delay of %v returned %v", delay, errs[i])
					}
				}
				ps.mu.Unlock()
				ps.calls[p].Add(1)
			}
		})
	}
	t.Cleanup(ps.stop)
	return ps
}

// awaitCalls waits until each goroutine has begun and ended a call.
func (ps *pushers) awaitCalls(t *testing.T) {
	t.Helper()
	for p := range ps.calls {
		before := ps.calls[p].Load()
		await(t, "calls of a pusher", func() bool { return t.Failed() || ps.calls[p].Load() >= before+2 })
	}
}

// wantOnce ends the pushes, and takes every message: each that the broker has confirmed comes once.
func (ps *pushers) wantOnce(ctx context.Context, t *testing.T, worker backend.Queue) {
	t.Helper()
	ps.stop()
	for len(ps.pushed) > 0 {
		ds, err := worker.Receive(ctx, 100, time.Minute)
		must(t, err)
		for _, d := range ds {
			if !ps.pushed[d.ID] && !ps.unknown[d.ID] {
				t.Errorf("%s comes twice, or was rejected", d.ID)
			}
			delete(ps.pushed, d.ID)
			delete(ps.unknown, d.ID)
		}
		ack(ctx, t, worker, ds...)
	}
	wantOnlyUnknown(t, worker, ps.unknown)
}

func (ps *pushers) stop() {
	ps.ended.Store(true)
	ps.running.Wait()
}
