// Package chaos tests the promises of delayq while things break.
//
// A test run takes one backend and a seed. The seed makes a [Plan]: the faults, and when each of
// them strikes. Clients, some of them processes of their own, push, receive and settle, and record
// each call. When the plan is over, the faults end and the queues are drained. Then [judge.Check]
// checks the [judge.History] against the promises of docs/guarantees.md.
//
// The same seed makes the same plan, and each client draws the same random numbers. The machine
// decides how the clients interleave, so a failure may need several runs to come again. Its history
// is stored, though. [judge.Shrink] reduces it to the calls on one message that break the rule, and
// [judge.Timeline] draws them.
//
// # How to run it
//
//	go test -run TestChaos                             the short form, about three minutes
//	go test -run TestChaos -chaos.for=4m -timeout 20m  all of it, about 12 minutes
//	go test -run TestChaos/keyspace -chaos.seed=7      one part, with the plan of a seed
//	        -chaos.faults='kill -9'                    only such faults
//	go test -run 'TestSoak$' -timeout 0 -chaos.soak=1h an hour of load, to find growth
//	go test -run TestMutants                           broken backends, each found by its rule
//	go test -run TestShow -chaos.show=FILE             a stored history, checked again
//	        [-chaos.message=N]                         or one message of it, drawn
//
// A run prints its seed; -chaos.plan prints the plan too. -chaos.out is the directory for the
// histories of failures.
//
// # What is checked
//
// [judge.Rules] lists the rules with the promises that each proves, as a table in docs/guarantees.md
// does. Most rules check single messages. A second queue has a name that begins like the first
// one's, and messages with ids of the first one's. Its one worker waits for one message at a time,
// and sometimes keeps one: its deliveries show order and wake-ups. Pushers replace messages that
// wait, and workers replace messages that they hold. One client makes mistakes all the time. While
// the queues drain, Stats is called again and again. A run fails when a rule had nothing to check.
//
// # Declared losses
//
// Each fault declares in advance the writes that the store may lose, those acknowledged shortly
// before the fault ([judge.Window.Undo]). Check treats such outcomes as unknown, counts the
// messages that they lose, and fails for any other loss. Most faults declare nothing. Failovers of
// Redis and power cuts do, and, for settlements alone, faults that break connections to RabbitMQ.
//
// A killed server loses nothing that it has written, because the kernel has it. For a power cut the
// server runs under testdata/synced.c, which notes the synced part of each file; the cut truncates
// the file to that part. TestPowerCut loses nothing where the server always syncs, and some
// messages where it syncs each second. Without syncs it loses more than declared, which Check has to
// find.
//
// A file of SQLite has no server. In the run sqlite this process has it open too, and other processes
// are killed and stopped, some while they hold the lock on the file. In the run sqlite-killed all
// clients are in other processes, which are killed at the same time: the next one recovers the log
// alone. Sometimes random bytes are written behind the log's last commit before, as a power cut may
// leave them: nobody waited for a sync of those. There is no cut to the synced part as for Redis,
// since a program in Go does not ask the C library for its writes.
//
// # Clocks
//
// The history and all workers use the machine's clock. The store's may differ, and may jump
// ([judge.ClockJump]): each delivery is checked against the times that the store's clock can have
// shown. A jump forward ends leases at once, and makes scheduled messages due. A jump back delays
// scheduled messages and prolongs leases. Neither loses messages: a run ends with a jump beyond all
// others, and has to drain then. The workers' clocks cannot be moved, since Go asks the kernel for
// the time. Only the difference between a worker's clock and the store's counts, though.
//
// # Poison
//
// Some messages kill the processes that handle them. Each has to be a dead letter after an exact
// number of attempts ([judge.Poison]); where the store keeps headers, the first one has a number of
// its own. At the end, when nothing is broken any more, it is redriven. It has to come back
// unchanged, and to be a dead letter again after as many attempts.
//
// # Mutants
//
// A mutant is a backend whose Lua scripts are changed on their way to the server. A run has to find
// each mutant by the rule that it breaks.
package chaos
