package consumer

import "context"

// An Observer keeps metrics and traces of a consumer. Its methods are safe for concurrent use and
// neither panic nor block.
type Observer interface {
	// AddWorkers counts n workers until remove is called.
	AddWorkers(n int) (remove func())

	// Failed counts n failures of a kind of package telemetry that no caller learns of.
	Failed(ctx context.Context, kind string, n int)

	// Expired counts n messages that expired and became dead letters.
	Expired(ctx context.Context, n int)

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
