// Package chaos tests what delayq promises while things break.
//
// A test run takes one backend and a seed. The seed makes a [Plan]: how much each client pushes and
// receives, and which fault strikes when. Clients, some of them processes of their own, record each
// call. When the plan is over the faults are healed and the queues drained. Then [judge.Check] holds
// the whole [judge.History] against the promises of docs/guarantees.md.
//
// The same seed makes the same plan, and each client draws the same random numbers. The machine
// decides how the clients interleave, so that a failure may need some runs to come again. It is not
// lost, though: the history is stored. [judge.Shrink] leaves of it the calls on one message that
// break the rule, and [judge.Timeline] draws them.
//
// # How to run it
//
//	go test -run TestChaos                                  the short form, about three minutes
//	go test -run TestChaos -chaos.for=4m -timeout 20m       all of it, about ten minutes
//	go test -run TestChaos/keyspace -chaos.seed=7           one part, with the plan of a seed
//	go test -run 'TestSoak$' -timeout 0 -chaos.soak=1h      load for an hour, and what grows
//	go test -run TestMutants                                the broken backends, and by which rule each is found
//	go test -run TestShow -chaos.show=FILE [-chaos.message=N]   a stored history, checked again or drawn
//
// A run prints its seed; -chaos.plan prints the plan too. Histories of failures are stored in the
// directory of -chaos.out.
//
// # What is checked
//
// [judge.Rules] lists the rules, with the promises that each proves; docs/guarantees.md has them as a
// table. Most look at one message. Besides the queue of most clients there is a second queue, whose
// name begins like the first one's and whose messages have ids of the first one's. A single worker
// waits there for one message at a time, and sometimes keeps one: what it receives tells of order and
// of wake-ups. One client makes mistakes all the time, and Stats is called again and again while the
// queues drain. A run in which a rule had nothing to look at fails.
//
// # What may be lost
//
// Each fault declares beforehand what the store may lose: the writes that were acknowledged shortly
// before it may be undone ([judge.Window.Undo]). Check takes such outcomes as unknown, counts the
// messages lost by them, and fails for anything beyond. Most faults declare nothing. Those that do are
// failovers of Redis, power cuts, and, for settlements alone, what breaks connections to RabbitMQ.
//
// Killing a server loses nothing that it has written, for the kernel has that. A power cut is made by
// testdata/synced.c, under which the server runs: it notes how much of a file is on the disk, and the
// cut leaves no more. TestPowerCut loses nothing where the server always syncs, something where it
// does so each second, and, without any sync, more than was declared, which Check has to find.
//
// # Clocks
//
// The machine's clock is that of the history and of all workers. The store's may differ, and may jump
// ([judge.ClockJump]): each delivery is judged by what the store's clock can have shown then. A jump
// forward ends leases at once, and makes scheduled messages due; a jump back delays what is scheduled
// and prolongs leases. Neither loses anything: a run ends with a jump beyond everything that the clock
// showed, and has to drain then. Go asks the kernel for the time, so that the workers' own clocks
// cannot be moved; but only the difference between a worker's and the store's counts.
//
// # Poison
//
// Some messages kill the process that handles them, in processes of their own. Each has to be a dead
// letter after exactly so many attempts ([judge.Poison]). At the end, when nothing breaks any more, it
// is redriven, and has to come back unchanged and to die again after exactly as many.
//
// # Who checks the checkers
//
// A [Mutant] is a backend whose Lua scripts are changed on their way to the server. A run has to find
// each by the rule that it breaks.
package chaos
