package rabbitmq_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// bitsBelow returns how many bits of a delay the levels below level k cover. The lowest two levels
// cover six each, the others four.
func bitsBelow(k int) int { return 6*min(k, 2) + 4*max(k-2, 0) }

// digits returns how many values the digit of level k has.
func digits(k int) int { return 1 << (bitsBelow(k+1) - bitsBelow(k)) }

// waited returns how long a message has waited, by the queues in its x-death. It must have passed
// each level once at most.
func waited(t *testing.T, d *amqp.Delivery) (total time.Duration) {
	t.Helper()
	passed := make(map[int]bool)
	deaths, _ := d.Headers["x-death"].([]any)
	for _, death := range deaths {
		queue := death.(amqp.Table)["queue"].(string)
		var level, digit int
		if _, err := fmt.Sscanf(queue, "delayq.v1.w%d.%x", &level, &digit); err != nil {
			t.Fatalf("%s has passed %q", d.MessageId, queue)
		}
		if passed[level] || death.(amqp.Table)["count"] != int64(1) {
			t.Errorf("%s has passed a level twice: %v", d.MessageId, deaths)
		}
		passed[level] = true
		total += time.Duration(digit<<bitsBelow(level)) * time.Millisecond
	}
	return total
}

// someDelays returns delays with many combinations of digits. All digits of level 0 occur with some
// of level 1, and some with all. All digits of levels 0 and 1 occur with the digit 1 of level 2.
func someDelays() (delays []time.Duration) {
	dense := func(from, n int) {
		for i := range n {
			delays = append(delays, time.Duration(from+i)*time.Millisecond)
		}
	}
	dense(1, 0x1ff)
	for d := 2; d < 64; d++ {
		dense(d*0x40-2, 5)
	}
	dense(0xffe, 0x42)
	for d := 1; d < 64; d++ {
		dense(0x1000+d*0x40-1, 2)
	}
	slices.Sort(delays)
	return slices.Compact(delays)
}

// lateAtMost allows for a busy machine. A wrong digit is seen in the queues that a message was in.
const lateAtMost = 30 * time.Second

// TestRoutes follows messages through the levels. Each waits only in the queues of its delay's
// digits.
func TestRoutes(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q, ch := open(t, url), channel(t, url)
	delays := someDelays()
	ms := make([]backend.Message, len(delays))
	for i, delay := range delays {
		ms[i] = message(fmt.Sprint(delay), delay)[0]
	}
	deliveries, err := ch.Consume(ownQueue(t), "", true, false, false, false, nil)
	must(t, err)
	began := time.Now()
	must(t, q.Schedule(ctx, ms)...)
	pushing := time.Since(began)
	missing := make(map[string]bool)
	for _, m := range ms {
		missing[m.ID] = true
	}
	for len(missing) > 0 {
		select {
		case d := <-deliveries:
			if !missing[d.MessageId] {
				t.Fatalf("%s came again", d.MessageId)
			}
			delete(missing, d.MessageId)
			due := time.UnixMicro(d.Headers["delayq-due"].(int64))
			delay, err := time.ParseDuration(d.MessageId)
			must(t, err)
			if w := waited(t, &d); w > delay || w < delay-pushing-time.Millisecond {
				t.Errorf("%s: it waited for %v, pushed within %v", d.MessageId, w, pushing)
			}
			if late := time.Since(due); late > lateAtMost {
				t.Errorf("%s: it is %v late", d.MessageId, late)
			}
			if d.Headers["BCC"] != nil || d.Headers["CC"] != nil {
				t.Errorf("%s shows its route: %v", d.MessageId, d.Headers)
			}
		case <-ctx.Done():
			t.Fatalf("%d messages are missing: %v", len(missing), slices.Collect(maps.Keys(missing)))
		}
	}
}

// TestHops publishes messages to the exchange of each level. Their next hop is each digit of each
// lower level, and they have keys for other exchanges. They wait only in the queue of that digit.
func TestHops(t *testing.T) {
	t.Parallel()
	const top, longest = 6, 3 // messages leave lower levels before the test looks
	url := vhost(t)
	_, ch, conn := open(t, url), channel(t, url), connection(t, url)
	// The queues that messages leave first, w3.1 after 65 s, get theirs last and are looked at first.
	for k := top - 1; k >= longest; k-- {
		for d := digits(k) - 1; d > 0; d-- {
			for from := k + 1; from <= top; from++ {
				others := []any{fmt.Sprintf("amq.%d>%d%x", (from+1)%8, k, d), fmt.Sprintf("amq.%d>%d%x", from, k, d), fmt.Sprintf("amq.%d>0f", k)}
				publish(t, conn, fmt.Sprintf("delayq.v1.w%d", from), "/"+queueOf(t), amqp.Publishing{Headers: amqp.Table{"BCC": others}})
			}
		}
	}
	for k := longest; k < top; k++ {
		for d := 1; d < digits(k); d++ {
			queue, n := fmt.Sprintf("delayq.v1.w%d.%x", k, d), top-k // one from each higher level
			await(t, fmt.Sprint(n, " messages in ", queue), func() bool { return ready(t, ch, queue) == n })
		}
	}
}

// TestBindings compares the bindings of each level with the digits of the levels below, and those of
// each digit's exchange with its queue.
func TestBindings(t *testing.T) {
	t.Parallel()
	server, name := sharedVhost(t)
	for prefix, opts := range map[string][]rabbitmq.Option{"delayq.v1.": nil, "delayq.v1.g16.": {rabbitmq.Grain(16 * time.Millisecond)}} {
		levels := 7
		if opts != nil {
			levels = 6
		}
		open(t, server.VhostURL(name), opts...)
		var got, want []string
		for _, line := range strings.Split(server.Ctl("list_bindings", "-q", "--no-table-headers", "-p", name, "source_name", "routing_key", "destination_name"), "\n") {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) == 3 && strings.HasPrefix(f[0], prefix+"w") {
				got = append(got, strings.Join(f, " "))
			}
		}
		for from := range levels {
			for d := 1; d < digits(from); d++ {
				want = append(want, fmt.Sprintf("%sw%d.%x  %sw%d.%x", prefix, from, d, prefix, from, d))
			}
			for k := range from {
				for d := 1; d < digits(k); d++ {
					want = append(want, fmt.Sprintf("%sw%d amq.%d>%d%x %sw%d.%x", prefix, from, from, k, d, prefix, k, d))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", prefix, got, want)
		}
	}
}

// TestLostLevel deletes the queues of a level. A message with such a digit comes early, and waits
// for the rest. A publish to the level declares it again.
func TestLostLevel(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{
		"held":            0x12f0 * time.Millisecond, // 0x1000, 0x2c0 and 0x30
		"published again": 0x1a00 * time.Millisecond, // 0x1000 and 0xa00, too long to wait in the handle
		"pushed there":    0xa00 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := vhost(t)
			ctx := deadline(t, patience)
			q, ch := open(t, url), channel(t, url)
			due := time.Now().Add(delay)
			for d := 1; d < digits(1); d++ {
				deleteQueue(t, ch, fmt.Sprintf("delayq.v1.w1.%x", d))
			}
			for {
				began := time.Now()
				err := q.Schedule(ctx, []backend.Message{{ID: "a", Body: []byte("body of a"), Due: due}})[0]
				// A busy broker may need longer to declare them than a push tries. No push may give up sooner.
				if !errors.Is(err, backend.ErrUnavailable) || ctx.Err() != nil || time.Since(began) < 10*time.Second {
					must(t, err)
					break
				}
			}
			d := receiveOne(ctx, t, q, "a")
			if late := judge.Late(due, time.Now()); late < 0 || d.Attempt != 1 {
				t.Errorf("%v before it was due: %+v", -late, d)
			}
			ack(ctx, t, q, d)
			wantNoMessage(t, q, 300*time.Millisecond)
		})
	}
}

// TestUserHeadersNamedLikeKeys has user headers with the names of the broker's headers for routing
// keys. The broker must not route by them.
func TestUserHeadersNamedLikeKeys(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q := open(t, url)
	want := map[string]string{"CC": "/other", "BCC": "1>0f", "x-death": "mine"}
	must(t, q.Schedule(ctx, []backend.Message{{ID: "a", Body: []byte("body of a"), Headers: want, Delay: 0x123 * time.Millisecond}})...)
	for range 3 {
		d := receiveOne(ctx, t, q, "a")
		if !maps.Equal(d.Headers, want) {
			t.Errorf("got %v, want %v", d.Headers, want)
		}
		nack(ctx, t, q, d, 0x11*time.Millisecond)
	}
	d := receiveOne(ctx, t, q, "a")
	if !maps.Equal(d.Headers, want) {
		t.Errorf("got %v, want %v", d.Headers, want)
	}
	ack(ctx, t, q, d)
	wantNoMessage(t, q, 400*time.Millisecond)
}

// takeProcessName has the broker return an internal error for a new quorum queue, as one without
// enough processor time does: a process has the name of the queue's, until a declaration has failed.
const takeProcessName = `
	Name = '%[1]s_%[2]s', Queue = rabbit_misc:r(<<"%[1]s">>, queue, <<"%[2]s">>),
	Await = fun Again(Result) -> case rabbit_amqqueue:lookup(Queue) of {Result, _} -> ok; _ -> timer:sleep(1), Again(Result) end end,
	spawn(fun() -> process_flag(priority, max), register(Name, self()), Await(ok), Await(error), application:set_env(rabbit, Name, failed) end), timer:sleep(100).`

func TestQueueThatDoesNotForm(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, taken := range []string{"delayq.v1.w2.5", "delayq.v1.q.orders"} {
		t.Run(taken, func(t *testing.T) {
			t.Parallel()
			server, name := sharedVhost(t)
			ctx := deadline(t, patience)
			server.Eval(fmt.Sprintf(takeProcessName, name, taken))
			q, err := newBackend(t, server.VhostURL(name)).Open(ctx, "orders", quiet())
			must(t, err)
			must(t, q.Schedule(ctx, message("m", 0))...)
			ack(ctx, t, q, receiveOne(ctx, t, q, "m"))
			if out := server.Eval(fmt.Sprintf(`application:get_env(rabbit, '%s_%s').`, name, taken)); !strings.Contains(out, "failed") {
				t.Errorf("no declaration failed: %s", out)
			}
		})
	}
}

// hideQueue has the broker say that a queue's node is away, as a busy one may do of itself while
// another client declares the queue: the queue is known as one that survives a restart, and not as
// one that runs, until there is a queue "seen".
const hideQueue = `
	Queue = rabbit_misc:r(<<"%[1]s">>, queue, <<"%[2]s">>), Seen = rabbit_misc:r(<<"%[1]s">>, queue, <<"seen">>),
	[Record] = mnesia:dirty_read(rabbit_queue, Queue), mnesia:dirty_delete(rabbit_queue, Queue),
	Await = fun Again() -> case mnesia:dirty_read(rabbit_queue, Seen) of [_] -> ok; _ -> timer:sleep(1), Again() end end,
	spawn(fun() -> Await(), mnesia:dirty_write(rabbit_queue, Record) end).`

func TestQueueWhoseNodeIsAwayForAMoment(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, hidden := range []string{"delayq.v1.w2.5", "delayq.v1.q.orders"} {
		t.Run(hidden, func(t *testing.T) {
			t.Parallel()
			server, name := sharedVhost(t)
			ctx, url := deadline(t, patience), server.VhostURL(name)
			first, err := newBackend(t, url).Open(ctx, "orders", quiet())
			must(t, err)
			server.Eval(fmt.Sprintf(hideQueue, name, hidden))
			_, err = channel(t, url).QueueDeclarePassive(hidden, true, false, false, false, nil)
			if err == nil || !strings.Contains(err.Error(), "down or inaccessible") {
				t.Fatalf("the hidden queue: %v", err)
			}
			seen := channel(t, url)
			time.AfterFunc(500*time.Millisecond, func() { _, _ = seen.QueueDeclare("seen", true, false, false, false, nil) }) // not before Open's first try
			q, err := newBackend(t, url).Open(ctx, "orders", quiet())
			must(t, err)
			must(t, first.Schedule(ctx, message("m", 0))...)
			ack(ctx, t, q, receiveOne(ctx, t, q, "m"))
		})
	}
}

// TestOtherTopology opens a queue where an exchange of a level exists with another type.
func TestOtherTopology(t *testing.T) {
	t.Parallel()
	url := vhost(t)
	must(t, channel(t, url).ExchangeDeclare("delayq.v1.w5", "topic", true, false, false, false, nil))
	b := newBackend(t, url)
	_, err := tryOpen(t, b, "q")
	wantError(t, err, "declaring exchange delayq.v1.w5", "other arguments", "another namespace")
}
