package chaos_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A poisoner keeps starting processes that consume a queue of messages of which each kills its process.
type poisoner struct {
	role    chaos.Role
	dir     string
	ids     []string
	pushed  time.Time
	patient time.Duration
	stop    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	files   []string
	program *testenv.Program
}

// poisonAttempts is after how many attempts poison has to be dead.
const poisonAttempts = 3

func newPoisoner(t *testing.T, v *venue, s *chaos.Env, dir string) *poisoner {
	t.Helper()
	p := &poisoner{dir: dir, patient: v.patient, stop: make(chan struct{}), pushed: time.Now(), role: chaos.Role{
		Client: "poison", Endpoint: v.straight, Queue: poisonQueue, Seed: s.Seed, Traits: s.Traits, Max: poisonAttempts,
	}}
	b, err := v.opens[0](t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), poisonQueue, quiet())
	must(t, err)
	for i := range v.poison {
		ms := []backend.Message{chaos.PoisonMessage(i, s.Traits)}
		must(t, firstOf(q.Schedule(t.Context(), ms)))
		p.ids = append(p.ids, ms[0].ID) // it may be of the store's making
	}
	return p
}

func firstOf(errs []error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

func (p *poisoner) start() {
	p.ended.Go(func() {
		for life := 0; ; life++ {
			select {
			case <-p.stop:
				return
			default:
				p.live(life)
			}
		}
	})
}

// live starts a process and waits for its death.
func (p *poisoner) live(life int) {
	role := p.role
	role.File = filepath.Join(p.dir, fmt.Sprintf("poison-%d.jsonl", life))
	program, err := startRole(role, p.dir)
	p.mu.Lock()
	p.files = append(p.files, role.File)
	p.program = program
	p.mu.Unlock()
	if err != nil {
		time.Sleep(100 * time.Millisecond) // the next life is the next try, not at once
		return
	}
	_, _ = io.Copy(io.Discard, program.Output()) // until it ends
	_ = program.Close()
}

// finish waits until all poison is dead, brings it back when nothing breaks any more, waits again, and returns what became of it
// both times.
func (p *poisoner) finish(t *testing.T, admin backend.Backend, healed time.Time) []judge.Poison {
	t.Helper()
	q, err := admin.Open(t.Context(), poisonQueue, quiet())
	must(t, err)
	defer func() { _ = q.Close() }()
	lives := p.life(t, q, p.pushed)
	sleepUntil(t.Context(), healed)
	if again := time.Now(); p.redrive(t, q, lives) {
		lives = append(lives, p.life(t, q, again)...)
	}
	p.end()
	must(t, firstOf(q.DeleteDead(t.Context(), p.ids)))
	for i := range lives {
		p.tell(&lives[i])
	}
	return lives
}

// life waits until all poison is dead.
func (p *poisoner) life(t *testing.T, dead backend.Queue, since time.Time) []judge.Poison {
	t.Helper()
	all := make([]judge.Poison, len(p.ids))
	for i, id := range p.ids {
		all[i] = judge.Poison{ID: id, Max: poisonAttempts, Pushed: p.pushed.UnixNano(), Start: since.UnixNano()}
	}
	poll(p.patient, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		letters, _, err := dead.ListDead(ctx, "", 10*len(p.ids))
		if err != nil {
			return false
		}
		for i := range all {
			chaos.SetDead(&all[i], letters, p.role.Traits)
			all[i].End = time.Now().UnixNano()
		}
		return !slices.ContainsFunc(all, func(one judge.Poison) bool { return !one.Dead })
	})
	return all
}

// redrive brings all poison back. What is not dead, or is so twice, has no second life that could be told from its first.
func (p *poisoner) redrive(t *testing.T, dead backend.Queue, lives []judge.Poison) bool {
	t.Helper()
	if slices.ContainsFunc(lives, func(one judge.Poison) bool { return one.Letters != 1 }) {
		return false
	}
	must(t, firstOf(dead.Redrive(t.Context(), p.ids)))
	return true
}

// end kills the last process.
func (p *poisoner) end() {
	close(p.stop)
	p.mu.Lock()
	if p.program != nil {
		_ = p.program.Kill()
	}
	p.mu.Unlock()
	p.ended.Wait()
}

func (p *poisoner) tell(one *judge.Poison) {
	for _, file := range p.files {
		calls, err := judge.ReadCalls(file)
		if err == nil { // else it died before it began
			chaos.AddHandled(one, calls)
		}
	}
}

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }
