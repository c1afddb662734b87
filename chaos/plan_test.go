package chaos_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
)

var someKinds = []chaos.Kind{
	{Name: "instant", Weight: 2},
	{Name: "long", Weight: 1, For: 300 * time.Millisecond},
	{Name: "alone", Weight: 1, For: 400 * time.Millisecond, Alone: true},
}

// TestSeedMakesThePlan makes plans of seeds: of one always the same, of another another.
func TestSeedMakesThePlan(t *testing.T) {
	t.Parallel()
	first := chaos.MakePlan(1, "memory", time.Minute, someKinds)
	if again := chaos.MakePlan(1, "memory", time.Minute, someKinds); !reflect.DeepEqual(first, again) {
		t.Errorf("of one seed:\n%v\n%v", first, again)
	}
	for _, other := range []chaos.Plan{
		chaos.MakePlan(2, "memory", time.Minute, someKinds), chaos.MakePlan(1, "zsetpoll", time.Minute, someKinds),
	} {
		if reflect.DeepEqual(first.Strikes, other.Strikes) {
			t.Errorf("of another seed or backend comes the same plan:\n%v", first)
		}
	}
}

// TestPlanStrikesWithEverything looks for each kind in a plan, some together, and those that want to be alone so.
func TestPlanStrikesWithEverything(t *testing.T) {
	t.Parallel()
	together := 0
	p := chaos.MakePlan(1, "memory", time.Minute, someKinds)
	for _, k := range someKinds {
		if !strings.Contains(p.String(), k.Name) {
			t.Errorf("no %s in\n%v", k.Name, p)
		}
	}
	for i, s := range p.Strikes[1:] {
		before := p.Strikes[i]
		if s.At >= before.At+before.For {
			continue
		}
		if together++; s.Kind == "alone" || before.Kind == "alone" {
			t.Errorf("%v and %v are together", before, s)
		}
	}
	if together == 0 {
		t.Errorf("no two faults are together in\n%v", p)
	}
}

// TestShrinkKeepsTheViolation stores a history of several messages, reads it again, and shrinks it to the calls of one.
func TestShrinkKeepsTheViolation(t *testing.T) {
	t.Parallel()
	calls := tale{}.push(0, 1, 10).take(2, 20, 11, 1).settle(2, chaos.Extend, 25, 20, chaos.LeaseLost).
		take(3, 119, 11, 2).settle(3, chaos.Ack, 130, 119, chaos.OK)
	calls[0].Items = append(calls[0].Items, chaos.Item{N: 2, Out: chaos.OK})
	path := filepath.Join(t.TempDir(), "history.json")
	must(t, (&chaos.History{Backend: "memory", Seed: 7, Calls: calls}).Save(path))
	h, err := chaos.LoadHistory(path)
	must(t, err)
	v := chaos.Violation{Rule: "lease", N: 1}
	small := chaos.Shrink(h, v)
	if n := len(small.Calls); n >= len(calls) || n < 3 {
		t.Errorf("%d calls of %d are left", n, len(calls))
	}
	picture := chaos.Timeline(small, 1)
	for _, want := range []string{"message 1 on memory, seed 7", "process 2: take, ok, attempt 1", "push, ok"} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
}
