// Package broken holds backends with one fault each, of the kinds that delay queues have been
// seen to have. They prove that the conformance suite bites: each must be caught by the check that
// is named for the rule it breaks.
package broken
