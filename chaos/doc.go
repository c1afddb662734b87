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
//	go test -run TestChaos                                  the short form, about three minutes
//	go test -run TestChaos -chaos.for=4m -timeout 20m       all of it, about ten minutes
//	go test -run TestChaos/keyspace -chaos.seed=7           one part, with the plan of a seed
//	go test -run 'TestSoak$' -timeout 0 -chaos.soak=1h      load for an hour, and what grows
//	go test -run TestMutants                                the broken backends, and by which rule each is found
//	go test -run TestShow -chaos.show=FILE [-chaos.message=N]   a stored history, judged again or drawn
//
// A run prints its seed; -chaos.plan prints the plan too. Histories of failures are stored where -chaos.out says.
//
// # What is judged
//
// [Rules] lists what a history is held against, with the promises that each rule proves; docs/guarantees.md has them as a table. Most look at the
// life of one message. Besides the queue that everybody works on there is one beside it, whose name begins like the other's and whose messages have ids
// that the other's have too. A single taker waits there for one message at a time, and sometimes sits on one: what it gets tells of order and of wake-ups.
// One actor makes mistakes all the time, and Stats is asked again and again while the queues drain. A run in which a rule had nothing to look
// at has failed.
//
// # What may be lost
//
// Each fault says beforehand what the store declares: the writes that were acknowledged so shortly before it may be undone ([Window.Undo]). Check
// takes such outcomes for unknown, counts what they cost, and fails for anything beyond them. Most faults declare nothing. Those that do are
// failovers of Redis, power cuts, and, for settlements alone, what breaks connections to RabbitMQ.
//
// To kill a server loses nothing that it has written, for the kernel has that. A power cut is made by testdata/synced.c, under which the server runs: it
// notes how much of a file is on the disk, and the cut leaves no more. TestPowerCut has it lose nothing where the server always syncs, something where
// it does so each second, and, without any sync, more than was declared, which is to be found.
//
// # Clocks
//
// The machine's clock is that of the history and of all workers. The store's may be off, and may jump ([Leap]): each hand-out is judged by what the
// store's clock can have shown then. A leap forward ends leases at once, and what was for later comes; a leap back puts off what waits
// and keeps what is held. Nothing is lost by either: a run ends with a leap beyond all that the clock ever showed, and has to drain then.
// Go asks the kernel for the time, so that the workers' own clocks cannot be moved; but between a worker and a store only the difference counts.
//
// # Poison
//
// Some messages kill the process that handles them, in processes of their own. Each has to be dead after exactly so many attempts ([Poison]). At the
// end, when nothing breaks any more, it is redriven, and has to come back whole and to die once more of exactly as many.
//
// # Who checks the checkers
//
// A [Mutant] is a backend whose Lua scripts are changed on their way to the server. A run has to find each by the rule that it breaks.
package chaos
