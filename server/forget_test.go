package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
	"github.com/delayq/delayq/memory"
)

const moreThanKept = 20_001

// many sends more requests than a server keeps the replies of, without a network.
func (f *fixture) many(request func(i int) (verb, body string)) {
	for i := range moreThanKept {
		verb, body := request(i)
		r := httptest.NewRequest(http.MethodPost, f.URL+orders+verb, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(keyHeader, fmt.Sprint("other-", i))
		f.server.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// lease pushes a message, and returns the body of its ack.
func (f *fixture) lease(t *testing.T) (ack string) {
	t.Helper()
	f.push(t)
	return `{"leases": ["` + f.receive(t)[0].Lease + `"]}`
}

func (f *fixture) instance(t *testing.T) string {
	t.Helper()
	return f.call(t, http.MethodGet, "/healthz", "").header.Get(wire.InstanceHeader)
}

// Ends of receives, and receives, do not make the server forget an ack.
func TestReceivesTakeNoRoomOfChanges(t *testing.T) {
	t.Parallel()
	f := start(t)
	ack := f.lease(t)
	f.post(t, "ack", ack, keyHeader, "k").want(t, http.StatusOK, "")
	f.many(func(i int) (verb, body string) {
		if i%100 == 0 {
			return "receive", `{"limit": -1}`
		}
		return "receive/end", fmt.Sprintf(`{"key": "%d"}`, i)
	})
	again := []string{keyHeader, "k", wire.InstanceHeader, f.instance(t)}
	f.post(t, "ack", ack, again...).want(t, http.StatusOK, "")
	f.post(t, "receive", `{}`, again...).want(t, http.StatusOK, "")
}

// A change that is sent again is not executed again when the first reply has made room for others.
func TestForgottenChange(t *testing.T) {
	t.Parallel()
	f := start(t)
	ack := f.lease(t)
	again := []string{keyHeader, "k", wire.InstanceHeader, f.instance(t)}
	f.post(t, "ack", ack, again...).want(t, http.StatusOK, "") // the first try did not come here
	f.many(func(int) (verb, body string) { return "ack", `{}` })
	f.post(t, "ack", ack, again...).want(t, http.StatusPreconditionFailed, wire.OtherServer)
	old := append([]string{wire.AgeHeader, "300000"}, again...)
	f.post(t, "ack", ack, old...).want(t, http.StatusPreconditionFailed, wire.OtherServer)
	f.post(t, "ack", ack, keyHeader, "k").want(t, http.StatusConflict, wire.LeaseLost)
	f.push(t)
	if ds := f.receive(t, again...); len(ds) != 1 {
		t.Errorf("a receive that was sent again took %v", ds)
	}
}

// A change that is sent again is executed when only replies were dropped that were sent before its
// first try.
func TestChangeAfterOthersWereForgotten(t *testing.T) {
	t.Parallel()
	f := start(t)
	ack := f.lease(t)
	f.many(func(int) (verb, body string) { return "ack", `{}` })
	young := []string{keyHeader, "k", wire.InstanceHeader, f.instance(t), wire.AgeHeader, "0"}
	until(t, "change that is executed", func() bool {
		return f.post(t, "ack", ack, young...).status == http.StatusOK
	})
}

// An age is a number of milliseconds.
func TestAgeThatIsNoNumber(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, age := range []string{"1s", "-1", "1.5"} {
		p := f.post(t, "ack", `{}`, wire.AgeHeader, age).want(t, http.StatusBadRequest, wire.Invalid)
		if p.Field != wire.AgeHeader || p.Value != strconv.Quote(age) {
			t.Errorf("%s: got %+v", age, p)
		}
	}
}

// failing is a store whose first ack fails after it was done.
type failing struct {
	backend.Backend
	err   error
	first *atomic.Bool
}

func (f failing) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := f.Backend.Open(ctx, name, o)
	return failingQueue{q, f}, err
}

type failingQueue struct {
	backend.Queue
	f failing
}

func (q failingQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	errs := q.Queue.Ack(ctx, ls)
	if q.f.first.CompareAndSwap(false, true) {
		return backend.FailAll(len(ls), q.f.err)
	}
	return errs
}

// A change that is sent again is not executed again when the first try failed and may have been
// executed. It is when the client knows of the failure, and when the first try changed nothing.
func TestChangeAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{errors.New("of the store"), http.StatusPreconditionFailed, wire.OtherServer},
		{backend.ErrOutcomeUnknown, http.StatusPreconditionFailed, wire.OtherServer},
		{
			errors.Join(backend.ErrUnavailable, backend.ErrOutcomeUnknown),
			http.StatusPreconditionFailed, wire.OtherServer,
		},
		{backend.ErrUnconfirmed, http.StatusPreconditionFailed, wire.OtherServer},
		{backend.ErrUnavailable, http.StatusConflict, wire.LeaseLost},
	} {
		f := startOn(t, failing{memory.New(), c.err, new(atomic.Bool)})
		ack := f.lease(t)
		if r := f.post(t, "ack", ack, keyHeader, "k"); r.status < http.StatusInternalServerError {
			t.Errorf("%v: got %d %s", c.err, r.status, r.body)
		}
		again := []string{keyHeader, "k", wire.InstanceHeader, f.instance(t)}
		f.post(t, "ack", ack, again...).want(t, c.status, c.code)
		f.post(t, "ack", ack, keyHeader, "k").want(t, http.StatusConflict, wire.LeaseLost)
	}
}

// away is a store whose first ack fails after some time, and changes nothing.
type away struct {
	backend.Backend
	first   *atomic.Bool
	called  chan struct{} // closed by the first ack
	changed *atomic.Int64 // how many acks succeeded
}

func (a away) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := a.Backend.Open(ctx, name, o)
	return awayQueue{q, a}, err
}

type awayQueue struct {
	backend.Queue
	a away
}

func (q awayQueue) Ack(ctx context.Context, ls []backend.Lease) []error {
	if q.a.first.CompareAndSwap(false, true) {
		close(q.a.called)
		<-time.After(300 * time.Millisecond)
		return backend.FailAll(len(ls), backend.ErrUnavailable)
	}
	errs := q.Queue.Ack(ctx, ls)
	if errors.Join(errs...) == nil {
		q.a.changed.Add(1)
	}
	return errs
}

// When the first try fails, one of the requests that wait for it is executed, and its reply is kept.
func TestWaitingForAFailure(t *testing.T) {
	t.Parallel()
	a := away{memory.New(), new(atomic.Bool), make(chan struct{}), new(atomic.Int64)}
	f := startOn(t, a)
	ack := f.lease(t)
	again := []string{keyHeader, "k", wire.InstanceHeader, f.instance(t)}
	var tries sync.WaitGroup
	tries.Go(func() {
		r, err := f.try(t.Context(), http.MethodPost, orders+"ack", ack, keyHeader, "k")
		if err != nil || r.status != http.StatusServiceUnavailable {
			t.Errorf("the first try: %d %s, %v", r.status, r.body, err)
		}
	})
	<-a.called
	for range 3 {
		tries.Go(func() {
			r, err := f.try(t.Context(), http.MethodPost, orders+"ack", ack, again...)
			if err != nil || r.status != http.StatusOK {
				t.Errorf("a try that waited: %d %s, %v", r.status, r.body, err)
			}
		})
	}
	tries.Wait()
	f.post(t, "ack", ack, again...).want(t, http.StatusOK, "")
	if n := a.changed.Load(); n != 1 {
		t.Errorf("%d acks succeeded", n)
	}
}
