package dashboard_test

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
)

func TestPush(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		b.post("/queues/orders/push", url.Values{
			"body": {"two\r\nlines"}, "after": {"1d12h"}, "id": {"a/../b"}, "type": {"mail"}, "headers": {"lang: en\r\nx:y: z\r\n"},
		}, "Pushed a/../b.", "scheduled", "lang en", "two lines", "in 1 d 12 h")
		m := wantState(t, q, "a/../b", delayq.StateScheduled)
		if string(m.Body) != "two\nlines" || m.Headers["lang"] != "en" || m.Headers["x"] != "y: z" || m.Headers["type"] != "mail" || time.Until(m.Due) != 36*time.Hour {
			t.Errorf("got %+v", m)
		}
		b.post("/queues/orders/push", url.Values{"body": {"00 ff\n41"}, "encoding": {"hex"}, "id": {"hex"}, "at": {"2030-01-31T18:00"}})
		m = wantState(t, q, "hex", delayq.StateScheduled)
		if string(m.Body) != "\x00\xffA" || m.Due.UTC().Format(time.RFC3339) != "2030-01-31T18:00:00Z" {
			t.Errorf("got %q due %v", m.Body, m.Due)
		}
		b.post("/queues/orders/push", url.Values{"body": {"AP9B"}, "encoding": {"base64"}, "id": {"b64"}}, "ready")
		for want, form := range map[string]url.Values{
			"not both":          {"after": {"1s"}, "at": {"2030-01-31T18:00"}, "body": {"kept"}},
			"delay: a duration": {"after": {"soon"}, "body": {"kept"}},
			"time: UTC":         {"at": {"noon"}, "body": {"kept"}},
			"key: value":        {"headers": {"novalue"}, "body": {"kept"}},
			"hexadecimal":       {"encoding": {"hex"}, "body": {"kept"}},
			"1 to 255 bytes":    {"id": {"\x00"}, "body": {"kept"}},
			"this id is taken":  {"id": {"b64"}, "body": {"kept"}}, // a duplicate
		} {
			r := b.postOnly("/queues/orders/push", form)
			b.rejected(r, http.StatusBadRequest, want)
			wantText(t, "the form", r.body, "kept")
		}
	})
}

func TestChangeOne(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		one := func(id, action string, more ...string) url.Values {
			form := url.Values{"id": {id}, "action": {action}, "back": {"message"}}
			for i := 0; i < len(more); i += 2 {
				form.Set(more[i], more[i+1])
			}
			return form
		}
		b.post("/queues/orders/act", one("s5", "now"), "Run now: 1 done.", "s5 ready")
		b.post("/queues/orders/act", one("s6", "reschedule", "after", "2h"), "Reschedule to 2 h from now: 1 done.", "in 2 h")
		b.post("/queues/orders/act", one("s7", "reschedule", "at", "2030-01-31T18:00"), "2030-01-31 18:00:00 UTC")
		b.post("/queues/orders/act", one("s8", "cancel"), "Cancel: 1 done.", "Messages that wait")
		wantState(t, q, "s8", 0)
		b.post("/queues/orders/act", one("s8", "cancel"), "Cancel: 0 done, 1 not there any more.")
		b.post("/queues/orders/act", one("leased", "cancel"), "Cancel: 0 done, 1 in flight.")
		b.post("/queues/orders/act", one("d1", "redrive"), "Redrive: 1 done.", "d1 ready")
		b.post("/queues/orders/act", one("d2", "delete"), "Delete: 1 done.", "There are no dead letters.")
		wantState(t, q, "d2", 0)
		b.rejected(b.postOnly("/queues/orders/act", one("s9", "explode")), http.StatusBadRequest, "action: cancel, reschedule")
		b.rejected(b.postOnly("/queues/orders/act", one("s9", "reschedule")), http.StatusBadRequest, "a delay or a time")
		b.rejected(b.postOnly("/queues/orders/act", url.Values{"action": {"cancel"}}), http.StatusBadRequest, "tick 1 to 500")
		b.rejected(b.postOnly("/queues/orders/act", one("~!", "cancel")), http.StatusBadRequest, "id")
	})
}

// A delay or a time that is typed beside another button than Reschedule is not dropped.
func TestTimeBesideAnotherActionIsRejected(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		for action, id := range map[string]string{"now": "s5", "cancel": "s5", "redrive": "d1", "delete": "d1"} {
			for name, value := range map[string]string{"after": "3h", "at": "2030-01-31T18:00"} {
				for _, target := range []string{"/queues/orders/act", "/queues/orders/jobs"} {
					b.rejected(b.postOnly(target, url.Values{"id": {id}, "action": {action}, name: {value}}), http.StatusBadRequest, "takes no delay and no time")
				}
			}
		}
		wantState(t, q, "s5", delayq.StateScheduled)
		wantState(t, q, "d1", delayq.StateDead)
		b.post("/queues/orders/act", url.Values{"id": {"s5"}, "action": {"now"}, "after": {" "}, "at": {""}}, "Run now: 1 done.")
	})
}

func TestChangeTicked(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		r := b.post("/queues/orders/act", url.Values{"id": {"s1", "s2", "gone"}, "action": {"cancel"}, "type": {"tick"}}, "Cancel: 2 done, 1 not there any more.")
		if !strings.Contains(r.to, "type=tick") {
			t.Errorf("the filter is lost on the way to %s", r.to)
		}
		wantState(t, q, "s1", 0)
		b.post("/queues/orders/act", url.Values{"id": {"d1", "d2"}, "action": {"redrive"}}, "Redrive: 2 done.")
		wantState(t, q, "d2", delayq.StateReady)
	})
}

// begin starts a job, waits until it has counted, and returns its page.
func begin(t *testing.T, b *browser, form url.Values, wants ...string) string {
	t.Helper()
	page := b.post("/queues/orders/jobs", form).to
	settled()
	b.get(page, wants...)
	return page
}

// settled waits until all jobs have nothing to do.
func settled() { synctest.Wait() }

func TestChangeAllThatMatch(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		page := begin(t, b, url.Values{"action": {"cancel"}, "type": {"tick"}, "within": {"10m"}},
			`Cancel: type "tick"`, "due within 10 min", "10 messages match, of 61 looked at", "Cancel 10 messages")
		wantState(t, q, "s1", delayq.StateScheduled) // nothing happens before the user decides
		push(t, q, "later", "", delayq.After(time.Minute), delayq.Type("tick"))
		b.get("/queues/orders", "Jobs", `Cancel: type "tick"`, "asking 0 10")
		b.post(page, url.Values{"do": {"begin"}})
		settled()
		b.get(page, "10 of 10 : 10 done", "Finished.")
		if p := b.get("/queues/orders", "finished 10 10"); !strings.Contains(p, path.Base(page)) {
			t.Error("the queue's page has no link to its job")
		}
		wantState(t, q, "s1", 0)
		wantState(t, q, "s10", delayq.StateScheduled)
		wantState(t, q, "later", delayq.StateScheduled) // it was not counted
		b.post(page, url.Values{"do": {"begin"}}, "Finished.")

		page = begin(t, b, url.Values{"action": {"redrive"}, "reason": {"mail server"}}, "2 messages match")
		b.post(page, url.Values{"do": {"begin"}})
		settled()
		wantState(t, q, "d1", delayq.StateReady)

		page = begin(t, b, url.Values{"action": {"now"}, "state": {"scheduled"}}, "Run now: scheduled", "51 messages match")
		b.post(page, url.Values{"do": {"stop"}}, "Stopped by a user.")
		b.post(page, url.Values{"do": {"begin"}}, "Stopped by a user.")
		wantState(t, q, "s10", delayq.StateScheduled)

		page = begin(t, b, url.Values{"action": {"delete"}}, "0 messages match")
		b.rejected(b.postOnly(page, url.Values{"do": {"dance"}}), http.StatusBadRequest, "begin or stop")
		b.rejected(b.do("GET", "/queues/orders/jobs/x", nil), http.StatusNotFound, "no such job")
		b.rejected(b.postOnly("/queues/orders/jobs", url.Values{"action": {"cancel"}, "within": {"x"}}), http.StatusBadRequest, "due within")
	})
}

// A large job shows how far it is, and can be stopped.
func TestJobIsStopped(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		slow := &slowQueue{Queue: q, calls: make(chan struct{})}
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": slow}), anybody)
		for i := range 350 {
			push(t, q, "m"+strconv.Itoa(i), "", delayq.After(time.Hour))
		}
		page := begin(t, b, url.Values{"action": {"cancel"}}, "350 messages match")
		b.post(page, url.Values{"do": {"begin"}})
		slow.calls <- struct{}{}
		settled()
		b.get(page, "50 of 350 : 50 done")
		if got := b.do("GET", page+"/status", nil).body; !strings.Contains(got, `"State":"working"`) || !strings.Contains(got, `"Percent":14`) {
			t.Errorf("the status is %s", got)
		}
		b.post(page, url.Values{"do": {"stop"}})
		settled()
		b.get(page, "Stopped", "stays changed")
		if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 300 {
			t.Errorf("%d are left, %v", s.Scheduled, err)
		}
	})
}

// A job whose user loses the right stops before its next batch.
func TestJobWithoutItsRight(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		slow := &slowQueue{Queue: q, calls: make(chan struct{})}
		var denied atomic.Bool
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": slow}), dashboard.Authorize(func(_ *http.Request, a dashboard.Action, _ string) error {
			if denied.Load() && a == dashboard.Cancel {
				return errors.New("ask your team")
			}
			return nil
		}))
		for i := range 350 {
			push(t, q, "m"+strconv.Itoa(i), "", delayq.After(time.Hour))
		}
		page := begin(t, b, url.Values{"action": {"cancel"}}, "350 messages match")
		b.post(page, url.Values{"do": {"begin"}})
		settled() // in its first batch
		denied.Store(true)
		slow.calls <- struct{}{}
		settled()
		b.get(page, "50 of 350 : 50 done", "you may not do this: ask your team")
	})
}

// A push whose outcome is unknown is shown with its id. Pushed once more, it is no second message.
func TestPushOfUnknownOutcome(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		b := open(t, dashboard.Queues(map[string]delayq.Queue{"orders": lostReply{q}}), anybody)
		r := b.postOnly("/queues/orders/push", url.Values{"body": {"x"}})
		_, value, _ := strings.Cut(r.body, `name="id" value="`)
		id, _, _ := strings.Cut(value, `"`)
		if r.status != http.StatusBadGateway || id == "" {
			t.Fatalf("%d: %s", r.status, r.body)
		}
		b.rejected(b.postOnly("/queues/orders/push", url.Values{"body": {"x"}, "id": {id}}), http.StatusBadRequest, "this id is taken")
		if s, err := q.Stats(t.Context()); err != nil || s.Ready != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// lostReply loses the replies to pushes that store their messages.
type lostReply struct{ delayq.Queue }

func (l lostReply) Push(ctx ctx, body []byte, opts ...delayq.PushOption) (id string, err error) {
	if id, err = l.Queue.Push(ctx, body, opts...); err == nil {
		err = delayq.ErrOutcomeUnknown
	}
	return id, err
}

// slowQueue cancels when it is told to.
type slowQueue struct {
	delayq.Queue
	calls chan struct{}
}

func (s *slowQueue) CancelBatch(ctx ctx, ids []string) error {
	select {
	case <-s.calls:
		return s.Queue.CancelBatch(ctx, ids)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestTooManyJobs(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		for range 64 {
			begin(t, b, url.Values{"action": {"cancel"}})
		}
		b.rejected(b.postOnly("/queues/orders/jobs", url.Values{"action": {"cancel"}}), http.StatusServiceUnavailable, "Too many jobs")
		time.Sleep(11 * time.Minute) // virtual
		begin(t, b, url.Values{"action": {"cancel"}})
	})
}

func TestPauseAndResume(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		b.post("/queues/orders/pause", url.Values{"for": {"2h"}}, "Paused: no worker")
		if s, err := q.Stats(t.Context()); err != nil || !s.Paused || time.Until(s.PausedUntil) != 2*time.Hour {
			t.Errorf("got %+v, %v", s, err)
		}
		time.Sleep(3 * time.Second) // virtual
		b.get("/", "paused until")
		b.post("/queues/orders/pause", nil)
		time.Sleep(3 * time.Second) // virtual
		b.get("/queues/orders", "orders paused")
		b.post("/queues/orders/resume", nil, "Resumed.")
		if s, err := q.Stats(t.Context()); err != nil || s.Paused {
			t.Errorf("got %+v, %v", s, err)
		}
		b.rejected(b.postOnly("/queues/orders/pause", url.Values{"for": {"ever"}}), http.StatusBadRequest, "a duration")
	})
}

func TestPurgeWantsTheName(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		for _, typed := range []string{"", "order", "ORDERS"} {
			b.rejected(b.postOnly("/queues/orders/purge", url.Values{"name": {typed}}), http.StatusBadRequest, "type the name")
		}
		wantState(t, q, "ready", delayq.StateReady)
		b.post("/queues/orders/purge", url.Values{"name": {"orders"}}, "Purged: 64 messages deleted.")
		wantState(t, q, "ready", 0)
	})
}

// What a store cannot do is shown with the reason, and rejected.
func TestStoreThatLacksFeatures(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b := lackingDashboard(t)
		b.get("/queues/orders", "This store cannot list messages that wait; show a message by its id; cancel; reschedule; pause all workers; purge.")
		if page := b.get("/queues/orders/messages", "This store does not support peeking."); strings.Contains(page, "<table") {
			t.Error("there is a list of messages")
		}
		b.get("/queues/orders/dead", "There are no dead letters.", "cannot show a message by its id")
		b.get("/queues/orders/purge", "Purge: this store does not support purging.")
		for target, form := range map[string]url.Values{
			"/queues/orders/act":    {"action": {"cancel"}, "id": {"a"}},
			"/queues/orders/jobs":   {"action": {"now"}},
			"/queues/orders/pause":  {},
			"/queues/orders/resume": {},
			"/queues/orders/purge":  {"name": {"orders"}},
		} {
			b.rejected(b.postOnly(target, form), http.StatusForbidden, "this store does not support")
		}
		b.rejected(b.do("GET", "/queues/orders/messages/a", nil), http.StatusNotImplemented, "cannot do that")
		b.post("/queues/orders/push", url.Values{"body": {"x"}}, "Pushed", "Ready waits for a worker")
	})
}

// A function of the user's that panics ends its job, and not the process.
func TestPanicInJob(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		var redacting, auditing bool
		b, q := openQueue(t,
			dashboard.Redact(func(_ string, m *delayq.MessageInfo) {
				m.Headers["seen"] = "yes" // also where the message has none
				if redacting {
					panic("redacting")
				}
			}),
			dashboard.Audit(func(dashboard.Event) {
				if auditing {
					panic("auditing")
				}
			}))
		push(t, q, "a", "", delayq.After(time.Hour))
		b.get("/queues/orders/messages/a", "seen yes")
		page := begin(t, b, url.Values{"action": {"cancel"}}, "1 messages match")
		auditing = true
		b.post(page, url.Values{"do": {"begin"}})
		settled()
		b.get(page, "Stopped. The job panicked: the log has the details.")
		push(t, q, "b", "", delayq.After(time.Hour))
		redacting = true
		begin(t, b, url.Values{"action": {"cancel"}}, "Stopped. The job panicked")
	})
}

// Browsers drop a line break at the beginning of a text area.
func TestRejectedPushKeepsItsBody(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		r := b.postOnly("/queues/orders/push", url.Values{"body": {"\nfirst"}, "headers": {"\nno colon"}})
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, ">\n\nfirst</textarea>") || !strings.Contains(r.body, ">\n\nno colon</textarea>") {
			t.Errorf("%d: %s", r.status, r.body)
		}
	})
}
