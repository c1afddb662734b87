package chaos

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a fault that a store can be put through.
type Kind struct {
	Name   string
	Weight int           // how often, against the others
	For    time.Duration // how long it lasts on average; 0 for one that strikes at once
	Alone  bool          // it keeps other faults from striking meanwhile
}

// Strike is one injection.
type Strike struct {
	At   time.Duration // from the start of the run
	For  time.Duration // 0 for one that strikes at once
	Kind string
	Dice uint64 // for what the fault itself chooses
}

// Plan is what a seed makes of a run.
type Plan struct {
	Seed    uint64
	Backend string
	For     time.Duration
	Strikes []Strike
}

// MakePlan plans a run: faults alone, with a breath between them, and some together with another. Each kind
// comes at least once where there is time for it.
func MakePlan(seed uint64, backend string, length time.Duration, kinds []Kind) Plan {
	dice := rand.New(rand.NewPCG(seed, hashOf(backend)))
	p := Plan{Seed: seed, Backend: backend, For: length}
	bag := newBag(dice, kinds)
	for at := 500 * time.Millisecond; len(kinds) > 0; {
		first := bag.strike(at)
		p.Strikes = append(p.Strikes, first)
		end := at + first.For
		if second, together := bag.beside(first); together {
			p.Strikes = append(p.Strikes, second)
			end = max(end, second.At+second.For)
		}
		at = end + 100*time.Millisecond + jitter(dice, 500*time.Millisecond)
		if at > length {
			break
		}
	}
	slices.SortStableFunc(p.Strikes, func(a, b Strike) int { return int(a.At - b.At) })
	return p
}

// bag deals kinds: all of them in turn, in an order of their own each round, as often as they weigh.
type bag struct {
	dice  *rand.Rand
	kinds []Kind
	round []Kind
}

func newBag(dice *rand.Rand, kinds []Kind) *bag { return &bag{dice: dice, kinds: kinds} }

func (b *bag) strike(at time.Duration) Strike {
	if len(b.round) == 0 {
		b.deal()
	}
	k := b.round[0]
	b.round = b.round[1:]
	s := Strike{At: at, Kind: k.Name, Dice: b.dice.Uint64()}
	if k.For > 0 {
		s.For = k.For/2 + jitter(b.dice, k.For)
	}
	return s
}

// beside adds a fault that strikes while the first one lasts, one time in three where both can.
func (b *bag) beside(first Strike) (second Strike, together bool) {
	if b.dice.IntN(3) > 0 || b.alone(first.Kind) || len(b.round) == 0 || b.round[0].Alone || b.round[0].Name == first.Kind {
		return second, false
	}
	return b.strike(first.At + jitter(b.dice, first.For+50*time.Millisecond)), true
}

func (b *bag) alone(kind string) bool {
	return slices.ContainsFunc(b.kinds, func(k Kind) bool { return k.Name == kind && k.Alone })
}

// deal puts one turn of every kind first, and then the further turns of those that weigh more.
func (b *bag) deal() {
	for turn, some := 0, true; some; turn++ {
		from := len(b.round)
		for _, k := range b.kinds {
			if turn < max(k.Weight, 1) {
				b.round = append(b.round, k)
			}
		}
		part := b.round[from:]
		b.dice.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		some = len(part) > 0
	}
}

func jitter(dice *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(dice.Int64N(int64(most)))
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum64()
}

// diceOf returns the random numbers of one client.
func diceOf(seed uint64, who string) *rand.Rand { return rand.New(rand.NewPCG(seed, hashOf(who))) }

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
