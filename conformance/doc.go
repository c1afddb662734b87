// Package conformance decides whether a backend keeps delayq's promises.
//
// A backend's author calls [Run] from a test, with a [Harness] that makes an empty backend:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{New: newBackend})
//	}
//
// Each check is a subtest named for the rule that it enforces, and prints that rule when it is
// broken. A check of a feature that the backend's traits do not claim is skipped. [Skips] lists
// those checks, to be pinned in a golden file, so that a lost capability cannot hide as a skip.
// [Judge] and [Verify] run the same checks outside of package testing, as "delayq verify" does;
// [Verdict.Outcome] sums up each result. With [Harness.Prefix] they can run on a store that has
// other queues.
//
// Where a store makes the ids, the suite maps its own names of messages to them, so that only
// checks of given ids are skipped. Where a store keeps no headers, messages have none.
//
// The checks are the same in virtual and in real time. In virtual time ([Harness.Virtual]) the
// backend runs on a fake clock, days pass at once, and nothing depends on the machine's speed. In
// real time earliness still has zero tolerance; the traits and [Harness.Slack] bound the lateness.
//
// Package broken tests the suite: it has backends with one fault each, which the check that is
// named for the rule must catch.
package conformance
