package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

const keyHeader = wire.KeyHeader

// A request that is sent again with its key gets the reply of the first one, and changes nothing.
func TestKeyRepeatsTheReply(t *testing.T) {
	t.Parallel()
	f := start(t)
	first := f.post(t, "messages", `{"body": "x"}`, keyHeader, "k1")
	again := f.post(t, "messages", `{"body": "x"}`, keyHeader, "k1")
	if first.status != http.StatusCreated || string(first.body) != string(again.body) || f.stats(t).Ready != 1 {
		t.Errorf("got %s, then %s; %d messages", first.body, again.body, f.stats(t).Ready)
	}
	f.post(t, "messages", `{"body": "y"}`, keyHeader, "k1").want(t, http.StatusUnprocessableEntity, wire.KeyReused)

	ds := f.receive(t, keyHeader, "k2")
	if same := f.receive(t, keyHeader, "k2"); len(ds) != 1 || len(same) != 1 || same[0].Lease != ds[0].Lease {
		t.Errorf("got %v, then %v", ds, same)
	}
	ack := `{"leases": ["` + ds[0].Lease + `"]}`
	for range 2 {
		f.post(t, "ack", ack, keyHeader, "k3").want(t, http.StatusOK, "")
	}
	f.post(t, "ack", ack).want(t, http.StatusConflict, wire.LeaseLost)
}

// A receive that is sent again after its leases have ended is executed again: another worker may
// have the messages.
func TestKeyAfterTheLease(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(t)
	receive := func() (got wire.Received) {
		f.post(t, "receive", `{"lease_for": "1s", "wait": "10s"}`, keyHeader, "k").into(t, &got)
		return got
	}
	if first, again := receive(), receive(); len(first.Messages) != 1 || len(again.Messages) != 1 {
		t.Fatalf("got %v, then %v", first, again)
	}
	var other []wire.Delivery
	until(t, "end of the lease", func() bool {
		other = f.receive(t)
		return len(other) == 1
	})
	until(t, "receive that is executed again", func() bool { return len(receive().Messages) == 0 })
	f.post(t, "ack", `{"leases": ["`+other[0].Lease+`"]}`).want(t, http.StatusOK, "")
	f.push(t)
	if got := receive(); len(got.Messages) != 0 {
		t.Errorf("the second reply was not kept: got %v", got)
	}
}

// A push without an id has the id of its key. So a server that was started meanwhile, and has not the
// replies of the first one, stores it once.
func TestKeyIsTheIDOfAPush(t *testing.T) {
	t.Parallel()
	store := memory.New()
	first, second := startOn(t, store), startOn(t, store)
	var ids [2]wire.Pushed
	first.post(t, "messages", `{"body": "x"}`, keyHeader, "k").into(t, &ids[0])
	second.post(t, "messages", `{"body": "x"}`, keyHeader, "k").into(t, &ids[1])
	if ids[0].ID != ids[1].ID || ids[0].Duplicate || !ids[1].Duplicate || first.stats(t).Ready != 1 {
		t.Errorf("got %+v", ids)
	}
	d := first.receive(t)[0]
	first.post(t, "ack", `{"leases": ["`+d.Lease+`"]}`).want(t, http.StatusOK, "")
	third := startOn(t, store)
	third.post(t, "messages", `{"body": "x"}`, keyHeader, "k").want(t, http.StatusCreated, "")
	if n := first.stats(t).Ready; n != 0 {
		t.Errorf("%d messages after the first one is done", n)
	}
}

// A server that was started meanwhile does not execute what an earlier one may have executed.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	f := start(t)
	instance := f.call(t, http.MethodGet, "/healthz", "").header.Get(wire.InstanceHeader)
	f.post(t, "messages", `{}`, wire.InstanceHeader, instance).want(t, http.StatusCreated, "")
	f.post(t, "messages", `{}`, wire.InstanceHeader, "of another").want(t, http.StatusPreconditionFailed, wire.OtherServer)
	if n := f.stats(t).Ready; n != 1 {
		t.Errorf("%d messages", n)
	}
}

// Leases are plain data: another server on the store settles them.
func TestLeasesOfAnotherServer(t *testing.T) {
	t.Parallel()
	store := memory.New()
	first, second := startOn(t, store), startOn(t, store)
	first.push(t)
	d := first.receive(t)[0]
	first.server.Close()
	second.post(t, "extend", `{"leases": ["`+d.Lease+`"], "lease_for": 5}`).want(t, http.StatusOK, "")
	second.post(t, "ack", `{"leases": ["`+d.Lease+`"]}`).want(t, http.StatusOK, "")
	if s := second.stats(t); s.InFlight+s.Ready != 0 {
		t.Errorf("left over: %+v", s)
	}
}

// held is a store whose first Receive returns what it has taken when its context has ended.
type held struct {
	backend.Backend
	taken chan struct{}
	first *atomic.Bool
}

func (h held) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := h.Backend.Open(ctx, name, o)
	return heldQueue{q, h}, err
}

type heldQueue struct {
	backend.Queue
	h held
}

func (q heldQueue) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if err == nil && q.h.first.CompareAndSwap(false, true) {
		q.h.taken <- struct{}{}
		<-ctx.Done()
	}
	return ds, err
}

// A message that was taken for a client that has gone goes back untouched.
func TestClientGoneAfterTheClaim(t *testing.T) {
	t.Parallel()
	for _, headers := range [][]string{nil, {keyHeader, "k"}} {
		h := held{memory.New(), make(chan struct{}), new(atomic.Bool)}
		f := startOn(t, h)
		f.push(t)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			_, _ = f.try(ctx, http.MethodPost, orders+"receive", `{"wait": "1m", "lease_for": "1h"}`, headers...)
		}()
		<-h.taken
		leave()
		<-left
		until(t, "message that was given back", func() bool { return f.stats(t).InFlight == 0 })
		ds := f.receive(t)
		if len(ds) != 1 || ds[0].Attempt != 1 {
			t.Errorf("%v: got %+v, want the message at attempt 1", headers, ds)
		}
	}
}

// gone is a client that gets no reply. Before that is noticed, then happens.
type gone struct {
	*httptest.ResponseRecorder
	then func()
}

func (g gone) Write([]byte) (int, error) {
	g.then()
	return 0, io.ErrClosedPipe
}

// receiveGone receives as receive does, for a client that has gone.
func (f *fixture) receiveGone(key string, then func()) {
	r := httptest.NewRequest(http.MethodPost, f.URL+orders+"receive", strings.NewReader(tenForAnHour))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(keyHeader, key)
	f.server.ServeHTTP(gone{httptest.NewRecorder(), then}, r)
}

// Messages go back when the request that got the reply last could not be answered, though another one
// has received them. Then the key begins anew.
func TestClientGoneAfterItAskedAgain(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.push(t)
	first := f.receive(t, keyHeader, "k")
	f.receiveGone("k", func() {})
	if s := f.stats(t); s.InFlight != 0 || s.Ready != 1 {
		t.Errorf("got %+v, want the message given back", s)
	}
	ds := f.receive(t, keyHeader, "k")
	if len(ds) != 1 || ds[0].Attempt != 1 || ds[0].Lease == first[0].Lease {
		t.Errorf("got %+v, want the message at attempt 1 under a new lease", ds)
	}
}

// Messages do not go back when a request that was sent again got them meanwhile.
func TestClientGoneThatHasAskedAgain(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(f *fixture){
		"the first request":  func(*fixture) {},
		"one that asked too": func(f *fixture) { f.receive(t, keyHeader, "k") },
	} {
		f := start(t)
		f.push(t)
		before(f)
		var got []wire.Delivery
		f.receiveGone("k", func() { got = f.receive(t, keyHeader, "k") })
		if s := f.stats(t); len(got) != 1 || s.InFlight != 1 {
			t.Errorf("%s: got %v and %+v, want the message in flight", name, got, s)
		}
	}
}

// Ending a receive by its key makes it reply at once, also when it arrives later.
func TestEndReceive(t *testing.T) {
	t.Parallel()
	f := start(t)
	got := make(chan reply, 1)
	go func() {
		r, _ := f.try(t.Context(), http.MethodPost, orders+"receive", `{"wait": "1m"}`, keyHeader, "waits")
		got <- r
	}()
	until(t, "receive that waits", func() bool { return waiting(t, f) == "1" })
	f.post(t, "receive/end", `{"key": "waits"}`).want(t, http.StatusOK, "")
	if r := <-got; string(r.body) != "{\"messages\":[]}\n" {
		t.Errorf("got %d %s", r.status, r.body)
	}
	f.post(t, "receive/end", `{"key": "late"}`).want(t, http.StatusOK, "")
	f.push(t)
	if ds := f.receive(t, keyHeader, "late"); len(ds) != 0 {
		t.Errorf("a receive that was ended before it came took %v", ds)
	}
}

// A server that drains ends all receives, and new ones, and serves the rest.
func TestDrain(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxWaiting(3))
	got := make(chan reply, 3)
	for range 3 {
		go func() {
			r, _ := f.try(t.Context(), http.MethodPost, orders+"receive", `{"wait": "1m"}`)
			got <- r
		}()
	}
	until(t, "three receives that wait", func() bool { return waiting(t, f) == "3" })
	f.post(t, "receive", `{"wait": "1m"}`).want(t, http.StatusTooManyRequests, wire.TooMany)
	f.server.Drain()
	for range 3 {
		if r := <-got; string(r.body) != "{\"messages\":[]}\n" {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	f.push(t)
	if ds := f.receive(t); len(ds) != 0 {
		t.Errorf("a draining server gave %v", ds)
	}
	if r := f.call(t, http.MethodGet, "/readyz", ""); r.status != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d", r.status)
	}
	f.server.Close()
	f.post(t, "messages", `{}`).want(t, http.StatusServiceUnavailable, wire.Unavailable)
}

// A server in memory that was started again knows no lease of the first one, though the same message
// is pushed and received again.
func TestLeaseOfAStoreThatIsGone(t *testing.T) {
	t.Parallel()
	first, second := start(t), start(t)
	var leases [2]string
	for i, f := range []*fixture{first, second} {
		f.push(t)
		leases[i] = f.receive(t)[0].Lease
	}
	second.post(t, "ack", `{"leases": ["`+leases[0]+`"]}`).want(t, http.StatusConflict, wire.LeaseLost)
	second.post(t, "ack", `{"leases": ["`+leases[1]+`"]}`).want(t, http.StatusOK, "")
}

// Another request under the same key is another message, though the server that knew the key is gone,
// and though it is a call on another path.
func TestKeyOfAnotherPush(t *testing.T) {
	t.Parallel()
	store := memory.New()
	first, second := startOn(t, store), startOn(t, store)
	first.post(t, "messages", `{"body": "a"}`, keyHeader, "k").want(t, http.StatusCreated, "")
	second.post(t, "messages", `{"body": "b"}`, keyHeader, "k").want(t, http.StatusCreated, "")
	first.post(t, "messages/batch", `{"messages": [{"body": "c"}]}`, keyHeader, "k").want(t, http.StatusOK, "")
	if n := first.stats(t).Ready; n != 3 {
		t.Errorf("%d messages of three pushes", n)
	}
}

// A request that is told to come again later may do so under its key.
func TestKeyAfterTooMany(t *testing.T) {
	t.Parallel()
	f := start(t, server.MaxWaiting(1))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.try(ctx, http.MethodPost, orders+"receive", `{"wait": 60}`) // ends with ctx
	}()
	until(t, "waiting receive", func() bool { return waiting(t, f) == "1" })
	f.post(t, "receive", `{}`, keyHeader, "k").want(t, http.StatusTooManyRequests, wire.TooMany)
	stop()
	<-ended
	until(t, "end of the receive", func() bool { return waiting(t, f) == "0" })
	f.post(t, "receive", `{}`, keyHeader, "k").want(t, http.StatusOK, "")
}
