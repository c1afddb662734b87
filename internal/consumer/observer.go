package consumer

import "context"

// An Observer keeps metrics and traces of a consumer. Its methods are safe for concurrent use and
// neither panic nor block.
type Observer interface {
	// AddWorkers counts n workers until remove is called.
	AddWorkers(n int) (remove func())

	// Failed counts n failures of a kind that no caller learns of.
	Failed(ctx context.Context, kind string, n int)

	// StartProcess is called before a handler. The context is the handler's. The Span is nil when
	// nothing is observed.
	StartProcess(ctx context.Context, d Delivery) (context.Context, Span)
}

// A Span observes one message that is handled.
type Span interface {
	// Returned is called when the handler has returned. failure is its kind, empty for success.
	Returned(ctx context.Context, failure string, err error)

	// End is called last, with the Action and the error of the call that settled the message.
	End(outcome string, notSettled error)
}

// The kinds of failures.
const (
	FailedHandler   = "handler"         // it returned an error
	FailedPanic     = "panic"           // it panicked
	FailedExit      = "exit"            // it ended its goroutine
	FailedTimeout   = "timeout"         // it failed after Timeout had ended its context
	FailedStopped   = "stopped"         // it failed after Drain had ended its context
	FailedLeaseLost = "lease_lost"      // another worker may have the message while it runs
	FailedAbandoned = "abandoned"       // all attempts ended without a word from the worker
	IgnoredTimeout  = "timeout_ignored" // it still runs five seconds after Timeout ended its context
	IgnoredStop     = "stop_ignored"    // it still runs five seconds after Drain ended its context
	FailedReceive   = "receive"         // the store gave no messages
	FailedRenew     = "renew"           // the store did not extend a lease
	FailedSettle    = "settle"          // the store did not settle the message
)

// FailureKinds returns all kinds of failures.
func FailureKinds() []string {
	return []string{
		FailedHandler, FailedPanic, FailedExit, FailedTimeout, FailedStopped, FailedLeaseLost,
		FailedAbandoned, IgnoredTimeout, IgnoredStop, FailedReceive, FailedRenew, FailedSettle,
	}
}
