package chaos_test

import (
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
