package httpclient_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/httpclient"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/server"
)

const (
	trip  = time.Millisecond
	grace = 50 * time.Millisecond // more than the client waits for the end of a receive
)

// direct calls a server without a network, and counts the receives.
type direct struct {
	server   *server.Server
	receives atomic.Int64
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/receive") {
		d.receives.Add(1)
	}
	time.Sleep(trip) // in virtual time
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// inBubble runs a test in virtual time, on a server without a network.
func inBubble(t *testing.T, run func(t *testing.T, d *direct, q backend.Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(memory.New())
		must(t, err)
		d := &direct{server: s}
		client := &http.Client{Transport: d}
		b, err := httpclient.Dial(t.Context(), "http://localhost", httpclient.HTTPClient(client))
		must(t, err)
		run(t, d, open(t, b))
		must(t, b.Close())
		s.Close()
	})
}

// A server that drains replies to each receive at once. Receive does not ask it all the time.
func TestReceiveOfADrainingServer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, d *direct, q backend.Queue) {
		d.server.Drain()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		ds, err := q.Receive(ctx, 1, time.Minute)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second+grace {
			t.Errorf("got %v, %v after %v", ds, err, time.Since(began))
		}
		if n := d.receives.Load(); n < 3 || n >= 10 {
			t.Errorf("%d receives in 2 s", n)
		}
	})
}

// Close ends a Receive that rests between two requests.
func TestCloseEndsTheRest(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, d *direct, q backend.Queue) {
		d.server.Drain()
		ended := make(chan error, 1)
		go func() {
			_, err := q.Receive(t.Context(), 1, time.Minute)
			ended <- err
		}()
		time.Sleep(time.Minute) // in virtual time: the pauses are at their longest
		synctest.Wait()
		before := d.receives.Load()
		began := time.Now()
		must(t, q.Close())
		err, took, more := <-ended, time.Since(began), d.receives.Load()-before
		if !errors.Is(err, backend.ErrClosed) || took > grace || more != 0 {
			t.Errorf("got %v after %v and %d more receives", err, took, more)
		}
	})
}

// A Receive that the server lets wait asks again at once, and gets a message without a pause.
func TestReceiveOfAServerThatWaits(t *testing.T) {
	t.Parallel()
	const delay = 20*time.Second + 10*trip // the first receive has ended
	inBubble(t, func(t *testing.T, d *direct, q backend.Queue) {
		must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a", Delay: delay}})...))
		began := time.Now()
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		took, receives := time.Since(began), d.receives.Load()
		if err != nil || len(ds) != 1 || took > delay || receives != 2 {
			t.Errorf("got %v, %v after %v in %d receives", ds, err, took, receives)
		}
	})
}
