// Package conformance decides whether a backend keeps delayq's promises.
//
// A backend's author calls [Run] from a test, with a [Harness] that makes an empty backend:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{New: newBackend})
//	}
//
// Each check is a subtest named for the rule that it enforces, and prints that rule when it
// is broken. What a check needs is read from the features that the backend's traits claim; a check whose
// need is not claimed is skipped, and [Skips] lists those, to be pinned in a golden file, so
// that a lost capability cannot hide as a skip. [Judge] and [Verify] run the same checks
// outside of package testing, as "delayq verify" does; [Verdict.Outcome] says what became of each. With
// [Harness.Prefix] they can run on a store that others use.
//
// The checks call messages by names of their own. Where the store makes the ids they are translated on the
// way, so that only a check of what a given id does is skipped there. Where it keeps no headers, messages
// have none.
//
// The checks are the same in virtual and in real time. In virtual time ([Harness.Virtual]) the
// backend runs on a fake clock, days pass in no time, and nothing depends on the machine's
// speed. In real time earliness still has zero tolerance; lateness has the bound that the traits and
// [Harness.Slack] declare.
//
// The suite is itself tested: package broken holds backends with one fault each, and a test
// asserts that the check named for the rule catches it.
package conformance
