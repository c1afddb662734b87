package rabbitmq_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// nested returns tables nested to a depth. The client library reads 32 levels at most, and ends the
// connection at a deeper table.
func nested(depth int) amqp.Table {
	h := amqp.Table{"end": true}
	for range depth {
		h = amqp.Table{"t": h}
	}
	return h
}

// strangeTables are headers that other programs may set. Some have delayq's names with other types
// and numbers.
func strangeTables() []amqp.Table {
	return []amqp.Table{
		nil,
		{},
		{"delayq-due": "tomorrow", "delayq-attempts": "1", "delayq-stamp": true, "delayq-headers": "k=v"},
		{"delayq-due": int64(math.MinInt64), "delayq-stamp": int64(math.MinInt64)},
		{"delayq-due": 1e300, "delayq-attempts": math.MaxFloat64},
		{"delayq-due": amqp.Table{"delayq-due": int64(1)}, "delayq-headers": amqp.Table{"a": amqp.Table{"b": []any{int32(1), nil, []byte("x")}}}},
		{"delayq-headers": amqp.Table{"": "", "\x00": []byte{0xff}, "n": nil, "t": time.Unix(1, 0), "d": amqp.Decimal{Scale: 2, Value: 17}}},
		{"delayq-headers": []any{"a", "b"}, "x-death": "none", "x-delivery-count": "many"},
		{"x-death": []any{amqp.Table{"count": int64(1 << 40), "queue": 17, "reason": nil}}, "x-first-death-queue": int64(1)},
		{"delayq-attempts": time.Unix(0, 0), "delayq-due": []byte("\xff\xff\xff\xff\xff\xff\xff\xff")},
		nested(20),
		{"delayq-headers": nested(20)},
		{"traceparent": "00-zz", "delayq-reason": nested(3), "delayq-died": "yesterday", "x-opt-delivery-attempts": "\x00"},
	}
}

// publishStrange publishes a message with each of the tables to the test's queue.
func publishStrange(t *testing.T, text string, tables []amqp.Table) {
	t.Helper()
	conn := connection(t, text)
	for i, h := range tables {
		publish(t, conn, "", ownQueue(t), amqp.Publishing{Headers: h, MessageId: fmt.Sprint("foreign-", i), Body: []byte(fmt.Sprint(i))})
	}
}

// TestStrangeHeadersFromOthers has foreign messages with all kinds of headers. Each is handed out
// once, with its body, and so is a message of delayq's.
func TestStrangeHeadersFromOthers(t *testing.T) {
	t.Parallel()
	text := shared(t)
	ctx := deadline(t, patience)
	q := open(t, text)
	tables := strangeTables()
	publishStrange(t, text, tables)
	must(t, q.Schedule(ctx, message("ours", 0))...)
	seen := make(map[string]bool)
	for len(seen) < len(tables)+1 {
		ds, err := q.Receive(ctx, 10, time.Minute)
		if err != nil {
			t.Fatalf("%v; only %d of %d came: %v", err, len(seen), len(tables)+1, seen)
		}
		for _, d := range ds {
			if seen[d.ID] || d.ID != "ours" && d.ID != "foreign-"+string(d.Body) {
				t.Errorf("%q with the body %q, seen before: %t", d.ID, d.Body, seen[d.ID])
			}
			seen[d.ID] = true
		}
		ack(ctx, t, q, ds...)
	}
}

// TestStrangeMessagesFail nacks foreign messages, which are published again, and then dead-letters
// them.
func TestStrangeMessagesFail(t *testing.T) {
	t.Parallel()
	text := shared(t)
	ctx := deadline(t, patience)
	q := open(t, text)
	tables := strangeTables()
	publishStrange(t, text, tables)
	for dead := 0; dead < len(tables); {
		ds, err := q.Receive(ctx, 10, time.Minute)
		if err != nil {
			t.Fatalf("%v after %d dead letters", err, dead)
		}
		for _, d := range ds {
			if d.Attempt == 1 {
				nack(ctx, t, q, d, 0)
				continue
			}
			must(t, q.Dead(ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: "\x00\xff"}})...)
			dead++
		}
	}
	ls, _, err := q.ListDead(ctx, "", 100)
	must(t, err)
	if len(ls) != len(tables) {
		t.Errorf("%d dead letters of %d", len(ls), len(tables))
	}
}

// TestReservedNames opens queues whose names have wildcards or separators of routing keys. The
// backend rejects them and sends nothing.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	text := vhost(t)
	b := newBackend(t, text)
	for _, name := range []string{"#", "*", "a.#", "*.a", "#.#", "a/b"} {
		_, err := delayq.New(t.Context(), name, delayq.WithBackend(b), delayq.WithLogger(quiet().Logger))
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		_, err = b.Open(t.Context(), name, quiet())
		wantError(t, err, "queue name", "slash")
	}
	_, err := channel(t, text).QueueDeclarePassive(undeliverable, true, false, false, false, nil)
	var refusal *amqp.Error
	if !errors.As(err, &refusal) || refusal.Code != amqp.NotFound {
		t.Errorf("the backend has declared its topology: %v", err)
	}
}

// TestTLSVerifiesByDefault connects to several hosts. A certificate must name the dialled host and
// be signed by a known authority.
func TestTLSVerifiesByDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, cert, key := certificates(t, dir)
	user, addr := tlsBroker(t, ca, cert, key)
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	byName, byAddress := "rabbitmqs://"+user.String()+"@localhost:"+port+"/q", "rabbitmqs://"+user.String()+"@127.0.0.1:"+port+"/q"
	must(t, openURL(t, byName+"?tls_ca="+ca))
	wantError(t, openURL(t, byName), "certificate signed by unknown authority")
	wantError(t, openURL(t, byAddress+"?tls_ca="+ca), "127.0.0.1")
	wantError(t, openURL(t, "rabbitmqs://"+user.String()+"@[::1]:"+port+"/q?tls_ca="+ca+"&hosts=127.0.0.1:"+port), "127.0.0.1 because it doesn't contain any IP SANs")
	must(t, openURL(t, "rabbitmqs://"+user.String()+"@[::1]:"+port+"/q?tls_ca="+ca+"&hosts=localhost:"+port))
	_, other, _ := certificates(t, dir)
	wantError(t, openURL(t, byName+"?tls_ca="+other), "certificate")
	plain := openURL(t, strings.Replace(byName, "rabbitmqs", "rabbitmq", 1))
	if plain == nil {
		t.Error("spoke in the clear to a port for TLS")
	}
}
