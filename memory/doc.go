// Package memory is the backend that needs nothing: messages live in the process.
// It is the default of delayq.New, and what the tests of a user's own code run on.
//
// # URLs
//
// memory:///QUEUE is a queue in the process's common store, memory://STORE/QUEUE one in
// a store of that name; both live as long as the process. The parameters
// max_messages and max_bytes are [MaxMessages] and [MaxBytes].
//
// # What it promises
//
// Everything that package delayq offers, exactly: due times to the nanosecond, order by
// (due, push order), cancelling, rescheduling, dead letters. What it cannot promise is
// durability: when the process ends, its messages are gone.
//
// # Time
//
// Its clock is the process's wall clock, or the one given with delayq.WithClock; under
// clockwork's fake clock a queue runs in virtual time. A message is handed out when the
// runtime's timers notice, about half a millisecond after it is due and never before. A
// jump of the wall clock is noticed within a minute.
//
// # Cost
//
// A pending message takes about 64 bytes beside its body and headers, its id included, in memory
// without pointers, so that millions of them do not slow the garbage collector. An id that
// UniqueFor keeps taken costs about 45 bytes beside its own length, until its time is over and the
// queue is used again. Push, hand-out and cancel are O(log n), and none ever waits for a table to
// grow. A message that is due at once costs 1.4 times as much beside a million pending ones as
// beside a thousand; one that has lain among a million costs about three times as much, nearly all
// of it cache misses. make bench measures both.
package memory
