package redisson_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// A removal is one that Java makes in the destination list.
type removal struct {
	name string
	take func(p *place, left []string) (still []string)
}

// removals are takes from every position by the commands that Redisson sends.
var removals = []removal{
	{"poll", func(p *place, left []string) []string {
		p.pops(left[0])
		return left[1:]
	}},
	{"pollLast", func(p *place, left []string) []string {
		return p.took(left, p.raw.RPop(p.ctx, p.name).Val(), len(left)-1)
	}},
	{"takeLast", func(p *place, left []string) []string {
		item := p.raw.BRPop(p.ctx, patience, p.name).Val()
		return p.took(left, item[1], len(left)-1)
	}},
	{"pollLastAndOfferFirstTo", func(p *place, left []string) []string {
		return p.took(left, p.raw.LMove(p.ctx, p.name, p.other(), "RIGHT", "LEFT").Val(), len(left)-1)
	}},
	{"remove", func(p *place, left []string) []string {
		at := len(left) / 2
		must(p.t, p.raw.LRem(p.ctx, p.name, 1, left[at]).Err())
		return slices.Delete(slices.Clone(left), at, at+1)
	}},
	{"rotate", func(p *place, left []string) []string {
		last := p.raw.LMove(p.ctx, p.name, p.name, "RIGHT", "LEFT").Val()
		return append([]string{last}, left[:len(left)-1]...)
	}},
}

func (p *place) other() string { return p.name + " other" }

// took checks the messages taken from a position.
func (p *place) took(left []string, got string, at int) []string {
	p.t.Helper()
	if got != left[at] {
		p.t.Errorf("Java got %q, want %q", got, left[at])
	}
	return slices.Delete(slices.Clone(left), at, at+1)
}

// Wherever Java takes from the destination list, messages that are still there are found by id and
// come with their ids and attempts, and the others are not found.
func TestJavaTakesFromEveryPosition(t *testing.T) {
	t.Parallel()
	for _, r := range removals {
		for _, times := range []int{1, 7} {
			for _, mixed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/java hands over=%t", r.name, times, mixed), func(t *testing.T) {
					t.Parallel()
					p := setup(t)
					t.Cleanup(func() { p.raw.Del(p.ctx, p.other()) })
					p.takeFromEveryPosition(r, times, mixed)
				})
			}
		}
	}
}

func (p *place) takeFromEveryPosition(r removal, times int, mixed bool) {
	q := p.open(redisson.Sweep(10 * time.Millisecond))
	const n = 20
	left := numbered(n)
	ids := make(map[string]string, n)
	for i, id := range p.push(q, 0, left...) {
		ids[left[i]] = id
	}
	p.spendAttempt(q, n)
	p.handed(left...)
	if mixed { // a transfer of Java's adds members without an id
		must(p.t, p.raw.RPush(p.ctx, p.name, "Java's").Err())
		left = append(left, "Java's")
	}
	for range times {
		left = r.take(p, left)
	}
	p.push(q, 0, "later") // handing it over reads the list
	left = append(left, "later")
	p.handed(left...)
	for text, id := range ids {
		if !slices.Contains(left, text) {
			wants(p.t, q.Cancel(p.ctx, []string{id}), backend.ErrNotFound)
		}
	}
	ours := slices.DeleteFunc(slices.Clone(left), func(text string) bool { return ids[text] == "" })
	for _, at := range []int{len(ours) - 1, len(ours) / 2, 0} {
		text := ours[at]
		if err := errors.Join(q.Cancel(p.ctx, []string{ids[text]})...); err != nil {
			p.t.Errorf("cancelling %q, which is there: %v", text, err)
		}
		left = slices.DeleteFunc(left, func(other string) bool { return other == text })
		ours = slices.Delete(ours, at, at+1)
	}
	for _, d := range p.takes(q, left...) {
		text := string(d.Body)
		if want := ids[text]; want != "" && (d.ID != want || d.Attempt != 2) {
			p.t.Errorf("%q comes as %s, attempt %d; want %s, attempt 2", text, d.ID, d.Attempt, want)
		}
	}
	p.empty()
}

// spendAttempt takes all n messages once and gives them back, due now and in their order.
func (p *place) spendAttempt(q backend.Queue, n int) {
	p.t.Helper()
	ds := p.take(q, n, time.Minute)
	rs := make([]backend.Return, n)
	for i, d := range ds {
		rs[i] = backend.Return{Lease: d.Lease(), Delay: time.Duration(i) * time.Millisecond}
	}
	must(p.t, q.Nack(p.ctx, rs)...)
}
