package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Timeline draws what happened to one message: a line for each call and each fault meanwhile, by
// time.
func Timeline(h *History, n uint32) string {
	ms := h.messages()
	at := slices.IndexFunc(ms, func(m message) bool { return m.n == n })
	if at < 0 {
		return fmt.Sprintf("message %d: no call is about it\n", n)
	}
	m := &ms[at]
	first, last := m.steps[0].Start, m.lastSeen()
	lines := []line{}
	for _, s := range m.steps {
		lines = append(lines, line{s.Start, s.End, s.draw()})
	}
	for _, w := range h.Windows {
		if w.Start <= last && w.End >= first {
			lines = append(lines, line{w.Start, w.End, "~~~ " + w.Kind})
		}
	}
	for s := range h.spans(first, last) {
		if s.shift != 0 && !s.frozen {
			lines = append(lines, line{s.from, s.to, fmt.Sprintf("~~~ the store's clock differs by %v", time.Duration(s.shift))})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	fmt.Fprintf(&b, "message %d on %s, seed %d; ms since %s\n", n, h.Backend, h.Seed, clockOf(first))
	for _, l := range lines {
		l.write(&b, first, last)
	}
	return b.String()
}

type line struct {
	from, to int64
	text     string
}

const bar = 40

// write draws the time of the line, and its text.
func (l line) write(b *strings.Builder, first, last int64) {
	scale := func(at int64) int {
		return int(float64(min(max(at, first), last)-first) / float64(max(last-first, 1)) * (bar - 1))
	}
	from, to, end := scale(l.from), bar-1, "     ..."
	if l.to != 0 {
		to, end = scale(l.to), fmt.Sprintf("%8.1f", ms(l.to-first))
	}
	picture := strings.Repeat(" ", from) + strings.Repeat("=", to-from+1) + strings.Repeat(" ", bar-1-to)
	fmt.Fprintf(b, "%9.1f %s |%s| %s\n", ms(l.from-first), end, picture, l.text)
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// draw describes a call.
func (s step) draw() string {
	var b strings.Builder
	fmt.Fprintf(&b, "process %d: %v, %v", s.Proc, s.Op, s.Out)
	if s.Op == Receive {
		fmt.Fprintf(&b, ", attempt %d, due %s, claimed %s", s.Attempt, clockOf(s.Due), clockOf(s.claim()))
	}
	if s.State != 0 {
		fmt.Fprintf(&b, ", shown as %v", s.State)
	}
	if s.Until != 0 {
		fmt.Fprintf(&b, ", lease until %s", clockOf(s.Until))
	}
	if s.Token.Hi|s.Token.Lo != 0 {
		fmt.Fprintf(&b, ", token %x:%x", s.Token.Hi, s.Token.Lo)
	}
	if s.Delay != 0 {
		fmt.Fprintf(&b, ", after %v", time.Duration(s.Delay))
	}
	if s.Op == Push && s.Due != 0 {
		fmt.Fprintf(&b, ", due %s", clockOf(s.Due))
	}
	if s.Untouched {
		b.WriteString(", untouched")
	}
	if s.Out == Unknown && s.Err != "" {
		fmt.Fprintf(&b, " (%.120s)", s.Err)
	}
	return b.String()
}

// Explain describes the first violations of each rule, with their timelines.
func Explain(h *History, v Verdict, most int) string {
	var b strings.Builder
	told := make(map[string]int)
	for _, f := range v.Violations {
		if told[f.Rule]++; told[f.Rule] <= most {
			fmt.Fprintf(&b, "%v\n", f)
			if f.N != 0 {
				b.WriteString(Timeline(Shrink(h, f), f.N))
			}
		}
	}
	return b.String()
}
