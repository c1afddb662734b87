package demo

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// A narrator writes what happens, a line at a time, from any goroutine.
type narrator struct {
	mu    sync.Mutex
	out   io.Writer
	color bool
	began time.Time
	err   error // the first of a write
}

// A tone colours a line by what it is about.
type tone string

// The tones are ANSI's SGR codes.
const (
	calm    tone = ""
	title   tone = "1"
	faint   tone = "2"
	alarm   tone = "1;31"
	good    tone = "32"
	trouble tone = "33"
	stopped tone = "36"
)

func newNarrator(out io.Writer, color bool) *narrator {
	return &narrator{out: out, color: color, began: time.Now()}
}

func (n *narrator) paint(t tone, text string) string {
	if !n.color || t == calm {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

func (n *narrator) write(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := io.WriteString(n.out, line+"\n"); err != nil && n.err == nil {
		n.err = fmt.Errorf("writing the output: %w", err)
	}
}

func (n *narrator) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

func (n *narrator) plain(text string) { n.write(text) }

// heading opens a scene.
func (n *narrator) heading(text, scale string) {
	n.write("\n" + n.paint(title, text) + n.paint(faint, "  "+scale))
}

// event tells what happened to a message, at a time of the story.
func (n *narrator) event(t tone, story time.Duration, who, text string) {
	times := fmt.Sprintf("%7.2fs %9s", time.Since(n.began).Seconds(), storyTime(story))
	n.write(n.paint(faint, times) + fmt.Sprintf("  %-11s ", jsonl.Shown(who)) + n.paint(t, text))
}

// broken tells of a broken promise.
func (n *narrator) broken(who, text string) {
	n.write(n.paint(alarm, fmt.Sprintf("PROMISE BROKEN: %s: %s", jsonl.Shown(who), text)))
}

func (n *narrator) summary(s summary) {
	t := good
	if s.broken() {
		t = alarm
	}
	n.write("\n" + n.paint(t, s.String()))
}

const day = 24 * time.Hour

// storyTime writes a time of the story with its two largest units.
func storyTime(d time.Duration) string {
	switch {
	case d >= day:
		return fmt.Sprintf("%dd %02dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
