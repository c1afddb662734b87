package admin

import (
	"context"
	"fmt"
	"time"
)

// Examiner is a [backend.Backend] that can tell how well its store is set up.
type Examiner interface {
	// Examine asks the store's servers about everything that messages depend on. It creates at most
	// what the first Open would. It returns an error when the store cannot be reached; a setting
	// that a server does not show is a finding.
	Examine(ctx context.Context) (Examination, error)
}

// QueueExaminer is a [backend.Backend] that can tell how one of its queues is used.
type QueueExaminer interface {
	// ExamineQueue reads a queue's data, and changes nothing. It returns an error when the store
	// cannot be reached.
	ExamineQueue(ctx context.Context, queue string) ([]Finding, error)
}

// Examination has an [Examiner]'s findings.
type Examination struct {
	Findings []Finding
	Clocks   []ClockDifference // none where clocks cannot be read
}

// Finding is something about a store, good or bad.
type Finding struct {
	Severity Severity
	About    string // a word or two: "version", "eviction"
	Servers  string // host:port of each server concerned, joined by ", "; empty for the whole store
	Text     string
	Remedy   string // empty where there is none
}

// Severity says how bad a finding is. The larger, the worse.
type Severity int

// Severities.
const (
	Fine    Severity = iota // as it should be
	Note                    // good to know, or unknown
	Warning                 // messages may get lost, be refused or come late
	Problem                 // nothing works, or soon nothing will
)

var severityNames = [...]string{Fine: "ok", Note: "note", Warning: "warning", Problem: "problem"}

// String returns the severity as delayq doctor shows it.
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severityNames) {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severityNames[s]
}

// ClockDifference is how a server's clock was found to differ from this machine's.
type ClockDifference struct {
	Server string        // host:port
	Ahead  time.Duration // of the server's clock; less than 0 where it is behind
	Within time.Duration // how far off that may be: half of a round trip
}

const (
	closeClocks = 100 * time.Millisecond
	apartClocks = time.Second
)

// Finding judges the difference.
func (d ClockDifference) Finding() Finding {
	f := Finding{About: "clock", Servers: d.Server, Text: d.String()}
	switch off := d.Ahead.Abs() - d.Within; {
	case off > apartClocks:
		f.Severity = Warning
	case off > closeClocks:
		f.Severity = Note
	default:
		return f
	}
	f.Remedy = "run NTP on both: " +
		"a message that a program makes due at a time of its own clock comes early or late by that much"
	return f
}

// String says which clock is ahead.
func (d ClockDifference) String() string {
	which := "ahead of"
	if d.Ahead < 0 {
		which = "behind"
	}
	return fmt.Sprintf("the server's clock is %v %s this machine's, give or take %v", d.Ahead.Abs(), which, d.Within)
}
