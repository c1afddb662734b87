package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault that a store can have.
type Kind struct {
	Name   string
	Weight int           // how often, compared with the others; at least 1
	For    time.Duration // its length on average; 0 for a fault that is over at once
	Alone  bool          // no other fault strikes meanwhile
}

// Strike is one injection of a fault.
type Strike struct {
	At   time.Duration // from the start of the run
	For  time.Duration // 0 for a fault that is over at once
	Kind string
	Seed uint64 // of the fault's own random choices
}

// Plan is what a seed makes of a run.
type Plan struct {
	Seed    uint64
	Backend string
	For     time.Duration
	Strikes []Strike
}

// MakePlan plans a run: single faults with pauses between them, and some overlapping another. Each
// kind strikes at least once where there is time for it.
func MakePlan(seed uint64, backend string, length time.Duration, kinds []Kind) Plan {
	rng := rngOf(seed, backend)
	p := Plan{Seed: seed, Backend: backend, For: length}
	d := &deck{rng: rng, kinds: kinds}
	for at := 500 * time.Millisecond; len(kinds) > 0; {
		first := d.strike(at)
		p.Strikes = append(p.Strikes, first)
		end := at + first.For
		if second, ok := d.overlapping(first); ok {
			p.Strikes = append(p.Strikes, second)
			end = max(end, second.At+second.For)
		}
		at = end + 100*time.Millisecond + jitter(rng, 500*time.Millisecond)
		if at > length {
			break
		}
	}
	slices.SortStableFunc(p.Strikes, func(a, b Strike) int { return int(a.At - b.At) })
	return p
}

// deck deals kinds in rounds. Each round has every kind as often as it weighs, in a new order.
type deck struct {
	rng   *rand.Rand
	kinds []Kind
	round []Kind
}

func (d *deck) strike(at time.Duration) Strike {
	if len(d.round) == 0 {
		d.deal()
	}
	k := d.round[0]
	d.round = d.round[1:]
	s := Strike{At: at, Kind: k.Name, Seed: d.rng.Uint64()}
	if k.For > 0 {
		s.For = k.For/2 + jitter(d.rng, k.For)
	}
	return s
}

// overlapping adds a fault that strikes while the first one lasts, one time in three where both can.
func (d *deck) overlapping(first Strike) (second Strike, ok bool) {
	alone := slices.ContainsFunc(d.kinds, func(k Kind) bool { return k.Name == first.Kind && k.Alone })
	if d.rng.IntN(3) > 0 || alone || len(d.round) == 0 || d.round[0].Alone || d.round[0].Name == first.Kind {
		return second, false
	}
	return d.strike(first.At + jitter(d.rng, first.For+50*time.Millisecond)), true
}

// deal puts every kind once at the front, and then the further turns of kinds that weigh more.
func (d *deck) deal() {
	for turn, more := 0, true; more; turn++ {
		from := len(d.round)
		for _, k := range d.kinds {
			if turn < max(k.Weight, 1) {
				d.round = append(d.round, k)
			}
		}
		part := d.round[from:]
		d.rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		more = len(part) > 0
	}
}

// String lists the plan.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s for %v: %d faults\n", p.Seed, p.Backend, p.For, len(p.Strikes))
	for _, s := range p.Strikes {
		fmt.Fprintf(&b, "  %8v %-20s", s.At.Round(time.Millisecond), s.Kind)
		if s.For > 0 {
			fmt.Fprintf(&b, " for %v", s.For.Round(time.Millisecond))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
