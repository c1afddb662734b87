package rabbitmq_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// nested is a table in a table, so many times. The client library reads no more than 32, and ends
// the connection for what has more.
func nested(depth int) amqp.Table {
	h := amqp.Table{"end": true}
	for range depth {
		h = amqp.Table{"t": h}
	}
	return h
}

// strangeTables are headers that other programs may put beside a message: ours with other types and
// numbers, and others'.
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

// publishStrange puts a message with each of the tables into the test's queue. The broker itself
// refuses numbers that are none.
func publishStrange(t *testing.T, text string, tables []amqp.Table) {
	t.Helper()
	ch := channel(t, text)
	must(t, ch.Confirm(false))
	for i, h := range tables {
		m := amqp.Publishing{Headers: h, MessageId: fmt.Sprint("foreign-", i), Body: []byte(fmt.Sprint(i))}
		c, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", ownQueue(t), true, false, m)
		must(t, err)
		if ok, err := c.WaitContext(deadline(t, patience)); err != nil || !ok || ch.IsClosed() {
			t.Fatalf("the broker does not take %v: %v", h, err)
		}
	}
}

// Whatever the headers of a foreign message are, it is handed out once, with its body, and its
// neighbours too.
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

// A foreign message that fails is published again and becomes a dead letter as any other.
func TestStrangeMessagesDie(t *testing.T) {
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
				must(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease()}})...)
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

// A queue whose name means something to bindings is refused before the broker hears of it.
func TestWildcardsAreNoNames(t *testing.T) {
	t.Parallel()
	text := vhost(t)
	b := newBackend(t, text)
	for _, name := range []string{"#", "*", "a.#", "*.a", "#.#", "a/b"} {
		_, err := delayq.New(t.Context(), name, delayq.WithBackend(b), delayq.WithLogger(quiet().Logger))
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	_, err := channel(t, text).QueueDeclarePassive(undeliverable, true, false, false, false, nil)
	var refusal *amqp.Error
	if !errors.As(err, &refusal) || refusal.Code != amqp.NotFound {
		t.Errorf("the broker has heard of it: %v", err)
	}
}

// TestTLSVerifiesByDefault connects to several hosts. A certificate must name the dialled host and
// be signed by a known authority.
func TestTLSVerifiesByDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, cert, key := certificateFor(t, dir, "localhost")
	user, addr := tlsBroker(t, ca, cert, key)
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	byName, byAddress := "rabbitmqs://"+user.String()+"@localhost:"+port+"/q", "rabbitmqs://"+user.String()+"@127.0.0.1:"+port+"/q"
	must(t, openURL(t, byName+"?tls_ca="+ca))
	wantError(t, openURL(t, byName), "certificate signed by unknown authority")
	wantError(t, openURL(t, byAddress+"?tls_ca="+ca), "127.0.0.1")
	wantError(t, openURL(t, "rabbitmqs://"+user.String()+"@[::1]:"+port+"/q?tls_ca="+ca+"&hosts=127.0.0.1:"+port), "127.0.0.1 because it doesn't contain any IP SANs")
	must(t, openURL(t, "rabbitmqs://"+user.String()+"@[::1]:"+port+"/q?tls_ca="+ca+"&hosts=localhost:"+port))
	_, other, _ := certificateFor(t, dir, "localhost")
	wantError(t, openURL(t, byName+"?tls_ca="+other), "certificate")
	plain := openURL(t, strings.Replace(byName, "rabbitmqs", "rabbitmq", 1))
	if plain == nil {
		t.Error("spoke in the clear to a port for TLS")
	}
}

// certificateFor writes an authority, and a certificate of its for one host with its key.
func certificateFor(t *testing.T, dir, host string) (ca, cert, key string) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{host},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(serverKey)
	must(t, err)
	return write(t, dir, "CERTIFICATE", sign(t, authority, authority, authorityKey, authorityKey)),
		write(t, dir, "CERTIFICATE", sign(t, server, authority, serverKey, authorityKey)), write(t, dir, "PRIVATE KEY", private)
}
