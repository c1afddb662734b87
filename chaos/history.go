package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// Call is one call on some messages. Times are in ns since 1970 by the machine's clock, which all processes share.
type Call struct {
	Proc   int    `json:"proc"`
	Handle int    `json:"handle,omitempty"` // which of the process's, one after the other
	Seq    int    `json:"seq,omitempty"`
	Op     Op     `json:"op"`
	Start  int64  `json:"start"`
	End    int64  `json:"end,omitempty"` // 0 where nobody saw it return
	Lease  int64  `json:"lease,omitempty"`
	Err    string `json:"err,omitempty"`
	Aside  bool   `json:"aside,omitempty"` // on the queue beside the one that all others are on
	Items  []Item `json:"items,omitempty"`

	Wrong *Mistake `json:"wrong,omitempty"` // of a call with bad input
	Count int64    `json:"count,omitempty"` // of all messages, in whatever state, as Stats has them

	low, high int64 // that the store's clock may have shown meanwhile
}

// Item is one message in a call.
type Item struct {
	N         uint32        `json:"n"` // the message's number, from 1; 0 where its body tells none
	Out       Outcome       `json:"out"`
	Bad       bool          `json:"bad,omitempty"` // body or headers are not as pushed
	Untouched bool          `json:"untouched,omitempty"`
	Attempt   int           `json:"attempt,omitempty"`
	Token     backend.Token `json:"token,omitzero"`
	Delay     int64         `json:"delay,omitempty"`
	Due       int64         `json:"due,omitempty"`   // by the store's clock
	Until     int64         `json:"until,omitempty"` // likewise
}

// Window is a fault as it happened.
type Window struct {
	Kind   string `json:"kind"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Effect int    `json:"effect"` // what it did, in its own unit; 0 is a fault that did not strike

	// Breaks says that replies were lost in it, connections or workers, and with them hand-outs that nobody saw.
	Breaks bool `json:"breaks,omitempty"`

	// Undo is the declared loss: writes acknowledged so many ns before Start, or in the window, may be undone. Without Pushes that goes
	// for settlements alone. Safe is since when writes stay although the window lasts; 0 for since its end.
	Undo   int64 `json:"undo,omitempty"`
	Pushes bool  `json:"pushes,omitempty"`
	Safe   int64 `json:"safe,omitempty"`

	// Elsewhere says that it struck processes or handles that have nothing to do with the queue beside.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// History is all that is known of a run.
type History struct {
	Backend string         `json:"backend"`
	Seed    uint64         `json:"seed"`
	Traits  backend.Traits `json:"traits"`
	Calls   []Call         `json:"calls"`
	Windows []Window       `json:"windows"`
	Leaps   []Leap         `json:"leaps,omitempty"` // of the store's clock; before the first it is the machine's
	Left    []string       `json:"left,omitempty"`  // in the store, at the end
	Poison  []Poison       `json:"poison,omitempty"`
	Drained bool           `json:"drained"`

	// Moot says that repeated pushes of this store may tell what is not so; see moot.
	Moot bool `json:"moot,omitempty"`
}

const never = math.MaxInt64

// end is when the call was over at the latest.
func (c *Call) end() int64 {
	if c.End == 0 {
		return never
	}
	return c.End
}

// Save writes the history to a file.
func (h *History) Save(path string) error {
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("writing a history: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// LoadHistory reads what Save wrote.
func LoadHistory(path string) (*History, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h := new(History)
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("reading the history %s: %w", path, err)
	}
	return h, nil
}

// step is a call's part in the life of one message.
type step struct {
	*Call
	*Item
}

// claim is when the store handed the message out, rounded up as the lease's end is.
func (s step) claim() int64 { return s.Until - s.Lease }

// life is what happened to one message, by the calls' starts.
type life struct {
	h     *History
	n     uint32
	steps []step
	hs    []hold // see holds
}

// lives sorts the history by message.
func (h *History) lives() []life {
	counts := make([]int, h.last()+2)
	for i := range h.Calls {
		for j := range h.Calls[i].Items {
			counts[h.Calls[i].Items[j].N+1]++
		}
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	steps := make([]step, counts[len(counts)-1])
	at := slices.Clone(counts)
	for i := range h.Calls {
		for j := range h.Calls[i].Items {
			it := &h.Calls[i].Items[j]
			steps[at[it.N]] = step{&h.Calls[i], it}
			at[it.N]++
		}
	}
	var ls []life
	for n := 1; n+1 < len(counts); n++ {
		if part := steps[counts[n]:counts[n+1]]; len(part) > 0 {
			slices.SortStableFunc(part, func(a, b step) int { return cmp.Compare(a.Start, b.Start) })
			ls = append(ls, life{h: h, n: uint32(n), steps: part})
		}
	}
	return ls
}

func (h *History) last() (n uint32) {
	for i := range h.Calls {
		for j := range h.Calls[i].Items {
			n = max(n, h.Calls[i].Items[j].N)
		}
	}
	return n
}

// recovery is how long after a fault has ended it may still be felt: until everybody has connected anew.
const recovery = int64(2 * time.Second)

// broke reports whether between two times of the machine's clock a fault took replies, connections or workers away.
func (h *History) broke(from, to int64) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool { return w.Breaks && w.Start <= to && from <= w.End+recovery })
}

// calmUntil is how long from then on nothing was broken that the queue beside could feel.
func (h *History) calmUntil(from int64) int64 {
	until := int64(never)
	for _, w := range h.Windows {
		if !w.Elsewhere && w.End+recovery >= from {
			until = min(until, w.Start)
		}
	}
	for _, l := range h.Leaps {
		if l.End+recovery >= from {
			until = min(until, l.Start)
		}
	}
	return until
}

// forgot reports whether between two times the store may have forgotten something.
func (h *History) forgot(from, to int64) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool { return w.Undo > 0 && w.Start-w.Undo <= to && from <= cmp.Or(w.Safe, w.End) })
}

// undone reports whether the store has declared that it may forget what this call did.
func (h *History) undone(s step) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool {
		return w.Undo > 0 && (w.Pushes || s.Op != Push) && s.end() >= w.Start-w.Undo && s.Start <= cmp.Or(w.Safe, w.End)
	})
}

// weaken makes outcomes that the store may have undone unknown, and counts them. Hand-outs stay: they were seen.
func (h *History) weaken() (n int) {
	if !slices.ContainsFunc(h.Windows, func(w Window) bool { return w.Undo > 0 }) {
		return 0
	}
	for i := range h.Calls {
		c := &h.Calls[i]
		for j := range c.Items {
			if c.Op != Take && c.Op != Seen && c.Items[j].Out != Unknown && h.undone(step{c, &c.Items[j]}) {
				c.Items[j].Out = Unknown
				n++
			}
		}
	}
	return n
}

func clockOf(ns int64) string { return time.Unix(0, ns).Format("15:04:05.000000") }
