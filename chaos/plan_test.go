package chaos

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func planOf(seed uint64, backend string) Plan {
	return MakePlan(seed, backend, time.Minute, []Kind{
		{Name: "instant", Weight: 2},
		{Name: "long", Weight: 1, For: 300 * time.Millisecond},
		{Name: "alone", Weight: 1, For: 400 * time.Millisecond, Alone: true},
	})
}

func TestSameSeedSamePlan(t *testing.T) {
	t.Parallel()
	first := planOf(1, "memory")
	if again := planOf(1, "memory"); !reflect.DeepEqual(first, again) {
		t.Errorf("of one seed:\n%v\n%v", first, again)
	}
	for _, other := range []Plan{planOf(2, "memory"), planOf(1, "zsetpoll")} {
		if reflect.DeepEqual(first.Strikes, other.Strikes) {
			t.Errorf("another seed or backend has the same plan:\n%v", first)
		}
	}
}

func TestPlanHasEveryKindAndOverlaps(t *testing.T) {
	t.Parallel()
	p, overlaps := planOf(1, "memory"), 0
	for _, name := range []string{"instant", "long", "alone"} {
		if !strings.Contains(p.String(), name) {
			t.Errorf("no %s in\n%v", name, p)
		}
	}
	for i, s := range p.Strikes[1:] {
		before := p.Strikes[i]
		if s.At >= before.At+before.For {
			continue
		}
		if overlaps++; s.Kind == "alone" || before.Kind == "alone" {
			t.Errorf("%v and %v overlap", before, s)
		}
	}
	if overlaps == 0 {
		t.Errorf("no two faults overlap in\n%v", p)
	}
}
