// Package chaos proves what delayq promises while things break.
//
// A run takes one backend and a seed. The seed makes a [Plan]: who pushes and takes how much, and which fault strikes when. Actors, some
// of them processes of their own, record each call: who, when, on which messages, what came back, and whether it is known. When the plan is over
// everything is healed and drained. Then [Check] judges the whole [History] by the invariants of docs/guarantees.md.
//
// The same seed makes the same plan, and each actor throws the same dice. The machine decides how they interleave, so that a
// failure may need some runs to come again. It is not lost, though: the history is stored, and [Shrink] leaves of it the calls on
// one message that break the rule, which [Timeline] draws.
//
// # How to run it
//
//	go test -run TestChaos                                  the short form, about two minutes
//	go test -run TestChaos -chaos.for=6m -timeout 20m       all of it, about ten minutes
//	go test -run TestChaos/keyspace -chaos.seed=7           one part, with the plan of a seed
//	go test -run 'TestSoak$' -timeout 0 -chaos.soak=1h      load for an hour, and what grows
//	go test -run TestMutants                                the broken backends, and by which rule each is found
//	go test -run TestShow -chaos.show=FILE [-chaos.message=N]   a stored history, judged again or drawn
//
// A run prints its seed; -chaos.plan prints the plan too. Histories of failures are stored where -chaos.out says.
//
// # What may be lost
//
// Each fault says beforehand what the store declares: the writes that were acknowledged so shortly before it may be undone ([Window.Undo]). Check
// takes such outcomes for unknown, counts what they cost, and fails for anything beyond them. Most faults declare nothing.
//
// # Who checks the checkers
//
// A [Mutant] is a backend whose Lua scripts are changed on their way to the server. A run has to find each by the rule that it breaks.
package chaos
