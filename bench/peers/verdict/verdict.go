package verdict

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/conformance"
)

// A peer is a queue to be judged.
type peer struct {
	name string // of its column

	// modules are paths in go.mod whose versions the page tells; versions is what it tells where there are none.
	modules  []string
	versions string

	// claims are what its traits declare, made is how its adapter is made, in words.
	claims, made string

	// needs tells what the machine lacks for it.
	needs func() error

	// open starts what it runs on, and returns how the suite gets at it. The server's version is for the page.
	open func(tb testing.TB) (h conformance.Harness, server string)

	notes []note

	// ours is a backend of delayq's, for contrast.
	ours bool

	// slow ones are left out of a short run.
	slow bool

	// unjudged are checks that would say more of the adapter than of the peer, with the reason.
	unjudged map[string]string

	// times is how often checks run whose finding takes luck.
	times map[string]int

	// sameProcess are checks whose second client is one of the same process, which has one set of workers.
	sameProcess string

	// ticks are the lengths of a tick for checks that take a longer one.
	ticks map[string]time.Duration

	// atOnce is how many checks run side by side.
	atOnce int
}

// A note explains what the suite says of a peer. Each broken rule must have one.
type note struct {
	checks string // a regular expression of their names, all of each
	says   string // part of the suite's message, "" for any
	is     conformance.Outcome
	why    string
	issues string

	// sometimes findings take luck: the check may find nothing.
	sometimes bool
}

func (n note) fits(v conformance.Verdict) bool {
	name := regexp.MustCompile("^(" + n.checks + ")$")
	return name.MatchString(v.Check.Name) && strings.Contains(detail(v), n.says)
}

// finding is one check's verdict on one peer, as the page has it.
type finding struct {
	Check   string              `json:"check"`
	Rule    int                 `json:"rule"`
	Outcome conformance.Outcome `json:"outcome"`
	Says    string              `json:"says,omitempty"`   // the suite
	Why     string              `json:"why,omitempty"`    // the note
	Issues  string              `json:"issues,omitempty"` // of the peer

	Sometimes bool `json:"sometimes,omitempty"`
}

// find turns a verdict into a finding. A rule that the peer has no word for is not offered, and the notes say what else is not claimed.
func (p peer) find(v conformance.Verdict) finding {
	f := finding{Check: v.Check.Name, Rule: v.Check.Invariant, Outcome: v.Outcome(), Says: detail(v)}
	if f.Outcome == conformance.Kept || f.Outcome == conformance.NotOffered {
		return f
	}
	if strings.Contains(f.Says, "back untouched: backend ") {
		f.Outcome = conformance.NotJudged // a message that was due as soon as the check stopped to look, which it then gives back
		return f
	}
	if i := strings.Index(f.Says, "backend "); i >= 0 && strings.Contains(f.Says[i:], "does not support ") {
		f.Outcome = conformance.NotOffered
		return f
	}
	for _, n := range p.notes {
		if n.fits(v) {
			f.Outcome, f.Why, f.Issues, f.Sometimes = n.is, n.why, n.issues, n.sometimes
			return f
		}
	}
	return f
}

// places are those of functions in the stack of a goroutine that was left.
var places = regexp.MustCompile(` /\S+\.go:\d+( \+0x[0-9a-f]+)?`)

// detail is what the suite says of a verdict, in one line.
func detail(v conformance.Verdict) string {
	if v.Err == nil {
		return v.Skipped
	}
	said, _, _ := strings.Cut(v.Err.Error(), "\nthe rule is:")
	said = strings.TrimPrefix(said, v.Check.Name+": ")
	return places.ReplaceAllString(strings.Join(strings.Fields(said), " "), "")
}

// fit makes the harness one for a check.
func (p peer) fit(h conformance.Harness, check string) conformance.Harness {
	if d := p.ticks[check]; d > 0 {
		h.Tick = d
	}
	if p.sameProcess != "" && regexp.MustCompile("^("+p.sameProcess+")$").MatchString(check) {
		h.Attach = nil
	}
	return h
}
