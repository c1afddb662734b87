package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// A backend lacks the features that it declares lacking, and no others.
var featureChecks = []Check{
	{
		Name: "features", Invariant: 15,
		Rule: "A method of a feature that the backend lacks returns ErrUnsupported, for each message, and changes nothing; no other method returns it.",
		run:  features,
	},
}

// verbs call the methods of features, those on several messages with all ids. Cancel, Reschedule
// and Redrive would change the messages.
var verbs = map[string]func(ctx context.Context, q backend.Queue, ids []string) []error{
	"Cancel": func(ctx context.Context, q backend.Queue, ids []string) []error { return q.Cancel(ctx, ids) },
	"Reschedule": func(ctx context.Context, q backend.Queue, ids []string) []error {
		return q.Reschedule(ctx, each(ids, func(id string) backend.Move { return backend.Move{ID: id, Delay: 1000 * time.Hour} }))
	},
	"Stats": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, err := q.Stats(ctx)
		return []error{err}
	},
	"Get": func(ctx context.Context, q backend.Queue, ids []string) []error {
		_, errs := q.Get(ctx, ids)
		return errs
	},
	"Peek": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, _, err := q.Peek(ctx, "", 1)
		return []error{err}
	},
	"Purge": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, err := q.Purge(ctx)
		return []error{err}
	},
	"PauseAll": func(ctx context.Context, q backend.Queue, _ []string) []error {
		return []error{q.PauseAll(ctx, backend.Pause{Until: backend.EarliestDue})} // which has ended
	},
	"ResumeAll": func(ctx context.Context, q backend.Queue, _ []string) []error { return []error{q.ResumeAll(ctx)} },
	"ListDead": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, _, err := q.ListDead(ctx, "", 1)
		return []error{err}
	},
	"ListDeadIDs": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, _, err := q.ListDeadIDs(ctx, "", 1)
		return []error{err}
	},
	"Redrive":    func(ctx context.Context, q backend.Queue, ids []string) []error { return q.Redrive(ctx, ids) },
	"DeleteDead": func(ctx context.Context, q backend.Queue, ids []string) []error { return q.DeleteDead(ctx, ids) },
	"TrimDead": func(ctx context.Context, q backend.Queue, _ []string) []error {
		_, _, err := q.TrimDead(ctx, backend.Retention{MaxCount: 1000})
		return []error{err}
	},
	"InTx": func(_ context.Context, q backend.Queue, _ []string) []error {
		_, err := q.InTx(nil)
		return []error{err}
	},
}

// onMany has the methods that return an error for each message.
var onMany = map[string]bool{"Cancel": true, "Get": true, "Reschedule": true, "Redrive": true, "DeleteDead": true}

// features calls the claimed methods on an empty queue, and then the lacking ones on a message of
// each state.
func features(t *testRun) {
	for verb, call := range t.verbs(true) {
		for _, err := range call(t.ctx, t.q, []string{"unknown"}) {
			if errors.Is(err, backend.ErrUnsupported) {
				t.fail("%s returns ErrUnsupported, and the backend does not declare it lacking", verb)
			}
		}
	}
	dead := t.pushAfter(0)
	t.must(t.deadLetter(t.takeID(dead), "of the check"), "Dead")
	delay := t.Tick + t.noise() // a busy machine has to hand out the other within it
	scheduled := t.pushAfter(delay)
	held := t.takeIDFor(t.pushAfter(0), t.lease())
	ids := []string{scheduled, "unknown", held.ID, dead}
	for verb, call := range t.verbs(false) {
		errs := call(t.ctx, t.q, ids)
		want := 1
		if onMany[verb] {
			want = len(ids)
		}
		if len(errs) != want {
			t.fail("%s is lacking, and returns %d errors; want %d", verb, len(errs), want)
		}
		for _, err := range errs {
			t.want(err, backend.ErrUnsupported, "%s, which is lacking", verb)
		}
	}
	t.ack(held)
	t.pass(delay)
	t.grace()
	t.ack(t.takeID(scheduled))
	t.nothing("one message is done and one is dead")
}

// verbs returns the methods of the features that the backend claims, or of those that it lacks.
func (t *testRun) verbs(claimed bool) map[string]func(context.Context, backend.Queue, []string) []error {
	calls := make(map[string]func(context.Context, backend.Queue, []string) []error)
	for _, f := range backend.Features() {
		if t.has(f) != claimed {
			continue
		}
		for _, verb := range f.Verbs() {
			if calls[verb] = verbs[verb]; calls[verb] == nil {
				t.fail("the suite cannot call %s", verb)
			}
		}
	}
	return calls
}
