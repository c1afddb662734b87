package chaos

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// A poisonRun keeps starting processes that consume a queue whose every message kills its process.
type poisonRun struct {
	ids    []string
	max    []int // attempts, by message
	pushed time.Time
	within time.Duration // in which all poison has to be dead
	loop   sync.WaitGroup

	mu      sync.Mutex
	process *workerProcess
	stopped bool
	err     error
}

// ownAttempts is the number of attempts of the first poison message itself, where the store keeps
// headers.
const ownAttempts = poisonAttempts + 1

// newPoisonRun pushes the poison messages.
func newPoisonRun(t *testing.T, v *target, e *Env, dir string) *poisonRun {
	t.Helper()
	p := &poisonRun{within: v.drainTime, pushed: time.Now(), process: &workerProcess{dir: dir, role: Role{
		Clients: []string{"poison"}, Endpoint: v.direct, Queue: poisonQueue, Seed: e.Seed, Traits: e.Traits,
	}}}
	b, err := v.opens[0](t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q := poisonedQueue(t, b)
	defer func() { _ = q.Close() }()
	ms := make([]delayq.Message, v.poison)
	for i := range ms {
		n := uint32(7 * (i + 1)) // a number of a message with headers
		ms[i] = contentOf(n, idOf(n), e.Traits)
		if !e.Traits.Supports(backend.OwnIDs) {
			ms[i].ID = ""
		}
		p.max = append(p.max, poisonAttempts)
		if i == 0 && e.Traits.Supports(backend.KeepingHeaders) {
			ms[i].Limits, p.max[i] = &delayq.Limits{Attempts: ownAttempts}, ownAttempts
		}
	}
	p.ids, err = q.PushBatch(t.Context(), ms)
	must(t, err)
	return p
}

func poisonedQueue(t *testing.T, b backend.Backend) delayq.Queue {
	t.Helper()
	q, err := delayq.New(t.Context(), poisonQueue, delayq.WithBackend(b), delayq.WithLogger(noLog))
	must(t, err)
	return q
}

func (p *poisonRun) start() {
	p.loop.Go(func() {
		for p.startProcess() {
			_, _ = io.Copy(io.Discard, p.process.program.Output()) // until it ends
			_ = p.process.program.Close()
		}
	})
}

// startProcess reports false once the run has stopped, or where no process starts.
func (p *poisonRun) startProcess() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.err = p.process.start()
	}
	return !p.stopped && p.err == nil
}

func (p *poisonRun) stop(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	p.stopped = true
	if p.process.program != nil {
		_ = p.process.program.Kill()
	}
	p.mu.Unlock()
	p.loop.Wait()
	must(t, p.err)
}

// finish waits until all poison is dead, redrives it when nothing is broken any more, and waits
// again. It returns the history of each poison message from its push, and from its redrive.
func (p *poisonRun) finish(t *testing.T, admin backend.Backend, healed time.Time) []judge.Poison {
	t.Helper()
	q := poisonedQueue(t, admin)
	defer func() { _ = q.Close() }()
	all := p.awaitDead(t, q, p.pushed)
	sleepUntil(t.Context(), healed)
	// The history of a message that is not dead, or dead twice, would mix with that from its redrive.
	if !slices.ContainsFunc(all, func(one judge.Poison) bool { return one.Letters != 1 }) {
		redriven := time.Now()
		must(t, q.Dead().Redrive(t.Context(), p.ids...))
		all = append(all, p.awaitDead(t, q, redriven)...)
	}
	p.stop(t)
	must(t, q.Dead().Delete(t.Context(), p.ids...))
	handled, err := p.process.calls()
	must(t, err)
	for i := range all {
		one := &all[i]
		for _, c := range handled {
			if c.Err == one.ID && c.Start >= one.Start && c.Start <= one.End {
				one.Seen = append(one.Seen, c.Items[0].Attempt)
				one.Altered = one.Altered || c.Items[0].Altered
			}
		}
	}
	return all
}

// awaitDead waits until all poison is dead.
func (p *poisonRun) awaitDead(t *testing.T, q delayq.Queue, since time.Time) []judge.Poison {
	t.Helper()
	all := make([]judge.Poison, len(p.ids))
	for i, id := range p.ids {
		all[i] = judge.Poison{ID: id, Max: p.max[i], Pushed: p.pushed.UnixNano(), Start: since.UnixNano()}
	}
	poll(p.within, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		letters, _, err := q.Dead().List(ctx, "", 10*len(p.ids))
		if err != nil {
			return false
		}
		for i := range all {
			setDead(&all[i], letters, p.process.role.Traits)
		}
		return !slices.ContainsFunc(all, func(one judge.Poison) bool { return !one.Dead })
	})
	return all
}

// setDead copies what the dead letters say of a poison message.
func setDead(p *judge.Poison, letters []backend.DeadLetter, t backend.Traits) {
	p.Letters, p.End = 0, time.Now().UnixNano()
	for i := range letters {
		if l := &letters[i]; l.ID == p.ID {
			_, _, whole := recognize(l.Body, l.Headers, t)
			p.Dead, p.Attempts, p.Altered = true, l.Attempts, p.Altered || !whole
			p.Letters++
		}
	}
}
