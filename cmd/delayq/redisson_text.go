package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/delayq/delayq/redisson"
)

// page is how wide the text is that is not made of names and ids.
const page = 80

// stamp shows a time to the millisecond, which is how due times are kept, and the offset of its zone.
const stamp = "2006-01-02T15:04:05.000Z07:00"

// at shows a time by the clocks here, as --at reads it.
func at(t time.Time) string { return t.Local().Format(stamp) }

// stampWidth is that of a column of times. An offset takes more room than UTC's Z.
func stampWidth() int { return len(at(time.Now())) }

func (i *inspection) text() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Queue %s\n\n", printable(i.queue))
	i.keys(&w)
	i.formats(&w)
	i.waiting(&w)
	return w.String()
}

// keys go last in their lines, since they may be long.
func (i *inspection) keys(w *strings.Builder) {
	r := &i.report
	row := func(what string, count any, key string) {
		fmt.Fprintf(w, "%-12s %10v  %s\n", what, count, printable(key))
	}
	row("REDISSON'S", "COUNT", "KEY")
	row("destination", r.Handed, r.Keys.Destination)
	row("timeouts", r.Waiting, r.Keys.Timeouts)
	row("index", r.Indexed, r.Keys.Index)
	row("subscribers", r.Subscribers, r.Keys.Channel)
	_ = w.WriteByte('\n')
	row("DELAYQ'S", "COUNT", "KEY")
	counts := map[string]any{"leases": r.Leased, "dead": r.Dead, "quarantine": r.Quarantined}
	for _, key := range r.Keys.Own {
		// a key's purpose is between the prefix and the queue
		what, _, _ := strings.Cut(strings.TrimPrefix(key, "delayq_"), ":")
		count, counted := counts[what]
		if !counted {
			count = ""
		}
		row(what, count, key)
	}
}

func (i *inspection) formats(w *strings.Builder) {
	r := &i.report
	looked := r.Unreadable
	for _, n := range r.Formats {
		looked += n
	}
	if looked == 0 {
		return
	}
	row := func(format string, n int, readers, writers string) {
		fmt.Fprintf(w, "%-12s %10d  %-17s %s\n", format, n, readers, writers)
	}
	fmt.Fprintf(w, "\n%-12s %10s  %-17s %s\n", "FORMAT", "MEMBERS", "READ BY REDISSON", "WRITTEN BY REDISSON")
	for _, f := range formats {
		if n := r.Formats[f]; n > 0 {
			row(f.String(), n, peers[f].readers, peers[f].writers)
		}
	}
	if r.Unreadable > 0 {
		row("unreadable", r.Unreadable, "never", "never; quarantined when due")
	}
	if r.Waiting > int64(looked) {
		fmt.Fprintf(w, "These are the first %d of %d.\n", looked, r.Waiting)
	}
}

func (i *inspection) waiting(w *strings.Builder) {
	if len(i.pending) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-*s  %-6s  %8s  %s\n", stampWidth(), "DUE", "FORMAT", "ATTEMPTS", "ID, BODY")
	for _, p := range i.pending {
		id, format := cmp.Or(p.ID, "-"), cmp.Or(formatOf(p), "-")
		fmt.Fprintf(w, "%-*s  %-6s  %8d  %s\n", stampWidth(), at(p.Due), format, p.Attempts, printable(id))
		contents(w, p)
	}
	sayMore(w, i.more, len(i.pending), "pending")
}

// formatOf returns "" for bytes without a layout.
func formatOf(p redisson.Pending) string {
	var bad *redisson.UnreadableError
	if errors.As(p.Err, &bad) && bad.What == notMember {
		return ""
	}
	return p.Format.String()
}

// notMember is the name in an error of bytes that have no layout; other errors name a codec.
const notMember = "member"

// contents are a message's body, or why there is none and the bytes in its place.
func contents(w *strings.Builder, p redisson.Pending) {
	if p.Err == nil {
		fmt.Fprintf(w, "    %s\n", excerpt(p.Body, page-4))
		return
	}
	var bad *redisson.UnreadableError
	if errors.As(p.Err, &bad) {
		misfit(w, unreadable(bad), bad.Bytes)
		return
	}
	misfit(w, p.Err.Error(), p.Member)
}

// unreadable distinguishes a payload that the codec cannot read from bytes that are no member.
func unreadable(bad *redisson.UnreadableError) string {
	if bad.What == notMember {
		return bad.Reason
	}
	return fmt.Sprintf("codec %s: %s", bad.What, bad.Reason)
}

// why is the error of an unreadable member, without the bytes.
func why(err error) string {
	var bad *redisson.UnreadableError
	if errors.As(err, &bad) {
		return unreadable(bad)
	}
	return err.Error()
}

// misfit shows bytes that could not be read.
func misfit(w *strings.Builder, reason string, b []byte) {
	for _, line := range folded("! "+reason, page-4) {
		fmt.Fprintf(w, "    %s\n", line)
	}
	fmt.Fprintf(w, "      %s\n", hexadecimal(b, page-6))
}
