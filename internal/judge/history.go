// Package judge keeps one history of the operations on a queue and holds it against the promises of
// docs/guarantees.md. The chaos tests, tests of backends and the demo record what they do as a
// [History]; [Check] returns the [Rules] that it breaks.
//
// A history tells what each call was asked, when it began and ended, and what it returned. A
// checker never trusts the store's own account: the earliest due time of a message follows from
// what was pushed, rescheduled and given back. What the store declared that it may lose
// ([Window.Undo]) counts as unknown, and everything beyond it is a violation.
//
// [Shrink] leaves of a history the calls on one message that break a rule, and [Timeline] draws
// them.
package judge

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

// Call is one call on some messages. Times are in ns since 1970 by the machine's clock, which all
// processes share.
type Call struct {
	Proc   int    `json:"proc"`
	Handle int    `json:"handle,omitempty"` // counts the handles that a process opened
	Seq    int    `json:"seq,omitempty"`
	Op     Op     `json:"op"`
	Start  int64  `json:"start"`
	End    int64  `json:"end,omitempty"` // 0 for a call that never returned
	Lease  int64  `json:"lease,omitempty"`
	Pause  int64  `json:"pause,omitempty"` // how long a PauseAll is to last; 0 for no end
	Err    string `json:"err,omitempty"`
	Second bool   `json:"second,omitempty"` // on the second queue
	Items  []Item `json:"items,omitempty"`

	Misuse *Mistake `json:"misuse,omitempty"` // of a call with bad input
	Count  int64    `json:"count,omitempty"`  // messages in any state, as Stats returned them

	low, high int64 // bounds of what the store's clock showed during the call
}

// Item is one message in a call.
type Item struct {
	N             uint32        `json:"n"` // the message's number, from 1; 0 for an unknown body
	Out           Outcome       `json:"out"`
	Altered       bool          `json:"altered,omitempty"` // body, headers or id are not as pushed
	Untouched     bool          `json:"untouched,omitempty"`
	State         backend.State `json:"state,omitempty"`           // as Get showed it
	Replace       bool          `json:"replace,omitempty"`         // of a push
	AfterInFlight bool          `json:"after_in_flight,omitempty"` // likewise
	Content       uint32        `json:"content,omitempty"`         // of a message that is replaced: which of its contents, each pushed once
	Attempt       int           `json:"attempt,omitempty"`
	Token         backend.Token `json:"token,omitzero"`
	Delay         int64         `json:"delay,omitempty"`
	Due           int64         `json:"due,omitempty"`   // by the store's clock; 0 for one that is not told
	Until         int64         `json:"until,omitempty"` // likewise
}

// Window is a fault that was injected.
type Window struct {
	Kind   string `json:"kind"`
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Effect int    `json:"effect"` // in the fault's own unit; 0 for a fault that changed nothing

	// Breaks says that replies, connections or workers were lost, and with them deliveries.
	Breaks bool `json:"breaks,omitempty"`

	// Undo is the declared loss: writes acknowledged up to Undo ns before Start, or in the window,
	// may be undone. That covers pushes only with Pushes set. From Safe on, writes stay although
	// the window lasts; 0 means its end.
	Undo   int64 `json:"undo,omitempty"`
	Pushes bool  `json:"pushes,omitempty"`
	Safe   int64 `json:"safe,omitempty"`

	// Resends says that the window lasted for so long that the store sent again what it had under
	// way. Any number of messages may then be there twice.
	Resends bool `json:"resends,omitempty"`

	// Elsewhere says that the fault struck nothing that the second queue depends on.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// History is everything that is known of a test run.
type History struct {
	Backend    string         `json:"backend"`
	Seed       uint64         `json:"seed"`
	Traits     backend.Traits `json:"traits"`
	Calls      []Call         `json:"calls"`
	Windows    []Window       `json:"windows"`
	ClockJumps []ClockJump    `json:"clock-jumps,omitempty"`
	ClockSkew  int64          `json:"clock-skew,omitempty"` // ns by which the store's clock may differ beyond its jumps
	Leftovers  []string       `json:"leftovers,omitempty"`  // in the store, at the end
	Poison     []Poison       `json:"poison,omitempty"`
	Drained    bool           `json:"drained"`

	// RepeatAfter is after how many ns without a reply a client repeats a call, for a store whose
	// client may then report a wrong outcome; else 0. See markIndeterminate.
	RepeatAfter int64 `json:"repeat-after,omitempty"`
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

// Load reads what [History.Save] wrote.
func Load(path string) (*History, error) {
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

// step is the part of a call that is about one message.
type step struct {
	*Call
	*Item
}

// claim is when the store handed the message out, rounded up as the lease's end is.
func (s step) claim() int64 { return s.Until - s.Lease }

func (s step) settles() bool { return s.Op == Ack || s.Op == Nack || s.Op == Dead }

// message is what happened to one message, by the calls' starts.
type message struct {
	h      *History
	n      uint32
	steps  []step
	leases []*delivery // see deliveries
}

// messages sorts the history by message.
func (h *History) messages() []message {
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
	var ms []message
	for n := 1; n+1 < len(counts); n++ {
		if part := steps[counts[n]:counts[n+1]]; len(part) > 0 {
			slices.SortStableFunc(part, func(a, b step) int { return cmp.Compare(a.Start, b.Start) })
			ms = append(ms, message{h: h, n: uint32(n), steps: part})
		}
	}
	return ms
}

func (h *History) last() (n uint32) {
	for i := range h.Calls {
		for j := range h.Calls[i].Items {
			n = max(n, h.Calls[i].Items[j].N)
		}
	}
	return n
}

// only returns the steps of some operations that may have changed something.
func (m *message) only(ops ...Op) []step {
	var some []step
	for _, s := range m.steps {
		if s.Out.may() && slices.Contains(ops, s.Op) {
			some = append(some, s)
		}
	}
	return some
}

func (m *message) has(ops ...Op) bool { return len(m.only(ops...)) > 0 }

// lastSeen is when the last call on the message began or returned.
func (m *message) lastSeen() (at int64) {
	for _, s := range m.steps {
		at = max(at, s.Start, s.End)
	}
	return at
}

// recovery is how long a fault is felt after its end: until every client has reconnected.
const recovery = int64(2 * time.Second)

// broke reports whether between two times of the machine's clock a fault took replies, connections
// or workers away.
func (h *History) broke(from, to int64) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool { return w.Breaks && w.during(from, to) })
}

// during reports whether the window, or the recovery after it, overlaps with a time.
func (w Window) during(from, to int64) bool { return w.Start <= to && from <= w.End+recovery }

// forgot reports whether the store may have forgotten something between two times.
func (h *History) forgot(from, to int64) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool {
		return w.Undo > 0 && w.Start-w.Undo <= to && from <= cmp.Or(w.Safe, w.End)
	})
}

// undone reports whether the store declared that it may forget what this call did.
func (h *History) undone(s step) bool {
	return slices.ContainsFunc(h.Windows, func(w Window) bool {
		return w.Undo > 0 && (w.Pushes || s.Op != Push) &&
			s.end() >= w.Start-w.Undo && s.Start <= cmp.Or(w.Safe, w.End)
	})
}

// applyDeclaredLoss makes outcomes that the store may have undone unknown, and counts them. A
// delivery stays: a worker saw it.
func (h *History) applyDeclaredLoss() (n int) {
	if !slices.ContainsFunc(h.Windows, func(w Window) bool { return w.Undo > 0 }) {
		return 0
	}
	for i := range h.Calls {
		c := &h.Calls[i]
		for j := range c.Items {
			if c.Op != Receive && c.Op != Listed && c.Items[j].Out != Unknown && h.undone(step{c, &c.Items[j]}) {
				c.Items[j].Out = Unknown
				n++
			}
		}
	}
	return n
}

func clockOf(ns int64) string { return time.Unix(0, ns).Format("15:04:05.000000") }

func saturate(a, b int64) int64 {
	if a > never-b {
		return never
	}
	return a + b
}
