package conformance

import "context"

// RunSome runs some checks as Run does.
var RunSome = runSome

// ReplaceRounds runs the check replace-race with so many rounds, with inFlight
// replace-in-flight-race, and with lossy on a harness whose second client may lose replies.
func ReplaceRounds(ctx context.Context, h Harness, rounds int, inFlight, lossy bool) error {
	c := Check{Name: "replace-race", Rule: "see the check of that name", run: func(t *testRun) { t.replaceRounds(rounds, race{inFlight, lossy}) }}
	return c.judge(ctx, h).Err
}
