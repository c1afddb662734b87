package chaos_test

import (
	"flag"
	"testing"

	"github.com/delayq/delayq/internal/judge"
)

var (
	showFlag    = flag.String("chaos.show", "", "a stored history to judge again")
	messageFlag = flag.Uint("chaos.message", 0, "the message of it to draw; 0 for those that break rules")
)

// TestShow judges a stored history, and draws what happened to a message.
func TestShow(t *testing.T) {
	if *showFlag == "" {
		t.Skip("-chaos.show names no history") // a tool, not a test
	}
	h, err := judge.Load(*showFlag)
	must(t, err)
	if *messageFlag > 0 {
		t.Logf("\n%s", judge.Timeline(h, uint32(*messageFlag)))
		return
	}
	v := judge.Check(h)
	t.Logf("%d violations of %v\n%s", len(v.Violations), v.Rules(), judge.Explain(h, v, 3))
}
