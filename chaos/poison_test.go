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
	"github.com/delayq/delayq/internal/testenv"
)

// A poisoner keeps starting processes that consume a queue of messages of which each kills its process.
type poisoner struct {
	role  chaos.Role
	dir   string
	n     int
	began time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	files   []string
	program *testenv.Program
	err     error
}

// poisonAttempts is after how many attempts poison has to be dead.
const poisonAttempts = 3

func newPoisoner(t *testing.T, v *venue, s *chaos.Stage, dir string) *poisoner {
	t.Helper()
	p := &poisoner{dir: dir, n: v.poison, stop: make(chan struct{}), began: time.Now(), role: chaos.Role{
		Play: "poison", Endpoint: v.straight, Queue: poisonQueue, Seed: s.Seed, Traits: s.Traits, Max: poisonAttempts,
	}}
	b, err := v.opens[0](t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), poisonQueue, quiet())
	must(t, err)
	for i := range p.n {
		ms := []backend.Message{{ID: poisonID(i), Body: []byte("poison")}}
		must(t, firstOf(q.Schedule(t.Context(), ms)))
	}
	return p
}

func poisonID(i int) string { return fmt.Sprint("poison-", i) }

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
	p.program, p.err = program, err
	p.mu.Unlock()
	if err != nil {
		time.Sleep(100 * time.Millisecond) // the next life is the next try, not at once
		return
	}
	_, _ = io.Copy(io.Discard, program.Output()) // until it ends
	_ = program.Close()
}

// finish waits until all poison is dead, and returns what became of it.
func (p *poisoner) finish(t *testing.T, admin backend.Backend) []chaos.Poison {
	t.Helper()
	q, err := admin.Open(t.Context(), poisonQueue, quiet())
	must(t, err)
	defer func() { _ = q.Close() }()
	dead := q.(backend.DeadLetters)
	var letters []backend.DeadLetter
	poll(time.Minute, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		page, _, err := dead.ListDead(ctx, "", 10*p.n)
		if err == nil {
			letters = page
		}
		return len(letters) >= p.n
	})
	close(p.stop)
	p.mu.Lock()
	if p.program != nil {
		_ = p.program.Kill()
	}
	p.mu.Unlock()
	p.ended.Wait()
	for _, l := range letters {
		must(t, firstOf(dead.DeleteDead(t.Context(), []string{l.ID})))
	}
	return p.tell(t, letters)
}

func (p *poisoner) tell(t *testing.T, letters []backend.DeadLetter) []chaos.Poison {
	t.Helper()
	seen := make(map[string][]int)
	for _, file := range p.files {
		calls, err := chaos.ReadCalls(file)
		if err != nil {
			continue // it died before it began
		}
		for _, c := range calls {
			seen[c.Err] = append(seen[c.Err], c.Items[0].Attempt)
		}
	}
	all := make([]chaos.Poison, p.n)
	for i := range all {
		id := poisonID(i)
		all[i] = chaos.Poison{ID: id, Max: poisonAttempts, Seen: seen[id], Start: p.began.UnixNano(), End: time.Now().UnixNano()}
		for _, l := range letters {
			if l.ID == id {
				all[i].Dead, all[i].Attempts = true, l.Attempts
			}
		}
	}
	return all
}

func quiet() backend.Options { return backend.Options{Logger: slog.New(slog.DiscardHandler)} }
