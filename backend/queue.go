package backend

import (
	"context"
	"time"
)

// Queue holds the messages of one name. It is safe for concurrent use.
//
// A method on several messages returns one error for each, in the order of the arguments; nil means
// that all succeeded. One message's failure does not touch the others. A method returns when its
// context ends, cancelled or expired, also while the store does not reply. The outcome of a request
// on the wire is then unknown, and repeating the call must do no harm: the error matches the
// context's and [ErrOutcomeUnknown]. A method that has returned does not touch its arguments any
// more.
//
// A method that belongs to a feature of [Traits.Lacks] returns [ErrUnsupported] and changes
// nothing: a backend embeds [Unsupported] for these. After Close every other method returns
// [ErrClosed].
//
// Methods may be added. A type that wraps a queue embeds Queue; one that implements it embeds
// [Unsupported].
type Queue interface {
	// Schedule stores the messages. A nil outcome means stored as durably as the traits say.
	//
	// It is idempotent by id: while a message of that id is scheduled, in flight or dead, the first
	// one stays as it is and the outcome is [ErrDuplicate], unless the backend lacks
	// [Deduplicating]. The error is that of [Duplicate] unless the backend lacks [Getting]. A store
	// at its limit returns [ErrFull] and keeps nothing of that message.
	//
	// A stored message with UniqueFor opens a window, rounded up to the resolution. Until it ends,
	// every push of that id returns [ErrDuplicate], with UniqueFor or without, also when the
	// message is gone. A rejected push does not start or extend a window.
	//
	// A message with Replace replaces the one of its id that waits, as [Message] says: at any
	// moment the store has exactly one of the two. A replacement that is repeated after a lost
	// reply does not replace a message that another call has pushed meanwhile. Where the store
	// cannot tell, the outcome is [ErrOutcomeUnknown]. It belongs to [Replacing].
	//
	// A queue with a limit accepts a replacement that needs no more room: each at a limit of
	// messages, one that is no larger at a limit of bytes. A full disk or server may reject it too.
	// After [ErrFull] the old message stays.
	//
	// With AfterInFlight it also replaces a message in flight, as [Message] says. The lease stays:
	// Cancel and Reschedule return [ErrInFlight], and Get shows the new message, [StateInFlight] with
	// 0 attempts. Ack, Nack, Dead and the lease's end all do the same then: the new message waits.
	// Nack ignores its Delay and Headers, and Dead keeps no letter. It belongs to
	// [ReplacingInFlight].
	//
	// The backend copies Body and Headers before it returns. It does not change the messages,
	// except their ids where it lacks [OwnIDs].
	Schedule(ctx context.Context, ms []Message) []error

	// Receive hands out at least one and at most limit due messages, each under a lease of its own
	// for that long, rounded up to the resolution, in order of (due, push order) unless the backend
	// lacks [Ordering]. It waits until one is due. It returns messages or an error, never both.
	//
	// A message whose lease ended is due again, at its old place in the order.
	//
	// When ctx ends, or has ended before, it takes nothing and returns ctx's error. When Close is
	// called, it takes nothing and returns [ErrClosed].
	//
	// The caller owns the deliveries: no Body or Headers is shared with the store or with another
	// delivery.
	Receive(ctx context.Context, limit int, lease time.Duration) ([]Delivery, error)

	// Ack deletes the messages: they are done. It is fenced, as are the next three: a lease that
	// has ended, was settled before or was never given gets [ErrLeaseLost] and changes nothing. So
	// the second of two acks fails. A lease is settled through the handle that received it.
	Ack(ctx context.Context, ls []Lease) []error

	// Nack gives the messages back, each to be due after its own delay. A message with NewHeaders
	// gets new headers, which every later hand-out and listing shows. The backend copies them
	// before it returns. When the outcome is an error, the headers are the old ones, unless that
	// error matches [ErrOutcomeUnknown]. A store at its limit may return [ErrFull] for headers that
	// are larger than the old ones: the lease is still in force.
	Nack(ctx context.Context, rs []Return) []error

	// Extend makes the leases end the given time from now, sooner or later than they would have,
	// and returns their new ends. The ends of the failed ones are zero.
	Extend(ctx context.Context, ls []Lease, lease time.Duration) ([]time.Time, []error)

	// Dead takes the messages out of circulation and keeps them as dead letters with the reason.
	Dead(ctx context.Context, bs []DeadLetterRequest) []error

	// Cancel deletes scheduled messages. A nil outcome means that the message will never be handed
	// out. One in flight returns [ErrInFlight]; one that is not there, was settled or is dead
	// returns [ErrNotFound], unless the backend lacks [CancelNotFound]. It belongs to [Cancelling].
	Cancel(ctx context.Context, ids []string) []error

	// Reschedule moves scheduled messages, sooner or later, keeping body, headers, attempts and
	// push order. Its errors are the same as Cancel's. It belongs to [Rescheduling].
	Reschedule(ctx context.Context, ms []Move) []error

	// Stats counts the messages of the whole queue, of all processes. It belongs to
	// [Counting]; a backend that lacks [CountingScheduled] counts some states alone.
	Stats(ctx context.Context) (Stats, error)

	// Get returns the messages of these ids, one for each, in any state: [ErrNotFound] for an id
	// that is not there, and a zero MessageInfo. One that is gone while UniqueFor keeps its id is
	// [StateDone]. A message whose lease has ended is [StateReady], whether or not the store has noticed.
	//
	// It changes nothing: it counts no attempt, touches no lease, and messages keep their places.
	// Each message is shown as it was at some moment of the call. Two messages of a call may show
	// two moments. Bodies and headers are the caller's. It belongs to [Getting].
	Get(ctx context.Context, ids []string) ([]MessageInfo, []error)

	// Peek returns up to limit scheduled or ready messages, by (due, push order) unless the backend
	// lacks [Ordering], from the cursor on: "" starts, and a returned cursor of "" says that there
	// are no more. A page may be shorter than limit, or empty, and have more behind it. Messages in
	// flight and dead letters are left out; a message whose lease ended is ready again. A cursor
	// that no Peek returned gets an [InvalidError].
	//
	// It changes nothing: no attempt is counted, workers get messages meanwhile, and the caller
	// owns the page, whose messages are [StateScheduled] or [StateReady]. Messages change while
	// pages are read. A message that is not due yet and stays in the queue is not skipped,
	// whichever other messages come, go or move meanwhile. It belongs to [Peeking].
	Peek(ctx context.Context, cursor string, limit int) (page []Pending, next string, err error)

	// Purge deletes all data of the queue: scheduled, ready and leased messages, dead letters,
	// quarantined ones, and ids that UniqueFor keeps. A pause stays. It ends all leases: an ack
	// returns [ErrLeaseLost]. Messages pushed before the call are gone when it returns nil;
	// messages pushed meanwhile may be. Handles go on working, as on a queue that was never used.
	//
	// It returns how many messages it deleted, in any state. After an error, or where a lost reply
	// made it try again, that is the number of known deletions. It belongs to [Purging].
	Purge(ctx context.Context) (removed int64, err error)

	// PauseAll makes the store hand out none of the queue's messages, to any handle of any process,
	// until ResumeAll or the pause's end. When it has returned nil the store leases no more
	// messages. A Receive whose reply was on its way may still return messages that were leased
	// before. All other Receives wait. The promise holds for callers of this interface; other
	// programs that share the queue go on.
	//
	// Everything else goes on: pushes, cancels, acks, nacks, dead letters, redrives. Leases end as
	// usual, and their messages are ready again. Stats shows the pause.
	//
	// A further call replaces the end of the pause. An end that has passed ends the pause. The end
	// is rounded up to the resolution. The store keeps it, so no process needs to wait for it. When
	// the pause ends, by its time or by ResumeAll, waiting Receives get the due messages, no later
	// than after a push. A pause is part of the queue, and not of its messages: neither Purge nor
	// the last message ends it. It belongs to [Pausing], as does the next.
	PauseAll(ctx context.Context, p Pause) error

	// ResumeAll ends the queue's pause. Without one it does nothing.
	ResumeAll(ctx context.Context) error

	// ListDead returns up to limit dead letters, oldest death first, from the cursor on: "" starts,
	// and a returned cursor of "" says that there are no more. A page may be short, or empty,
	// before that, as where letters are large. Letters that come or go between two pages do not
	// make it skip others. It belongs to [Redriving], as do the next four.
	ListDead(ctx context.Context, cursor string, limit int) (page []DeadLetter, next string, err error)

	// ListDeadIDs is ListDead without the contents: the ids, in the same order. A store that can
	// only read whole letters passes the page of its ListDead through [DeadIDs].
	ListDeadIDs(ctx context.Context, cursor string, limit int) (ids []string, next string, err error)

	// Redrive schedules dead letters again, due at once, whole, with attempts counted from zero, in
	// the push order as if they were pushed then. An id that is not dead gets [ErrNotFound].
	Redrive(ctx context.Context, ids []string) []error

	// DeleteDead deletes dead letters. An id that is not dead gets [ErrNotFound].
	DeleteDead(ctx context.Context, ids []string) []error

	// TrimDead deletes dead letters that the retention does not keep, the oldest deaths first, and
	// returns how many it deleted and whether there may be more. One call deletes a bounded number
	// in one step, few enough that other calls do not wait for long. An id that UniqueFor keeps stays
	// taken. Where a lost reply made it try again, removed is the number of known deletions.
	TrimDead(ctx context.Context, r Retention) (removed int, more bool, err error)

	// InTx returns a view of the queue whose Schedule, Ack, Cancel and Reschedule run inside the
	// caller's transaction. A rollback leaves nothing of them. From the commit on other callers see
	// what they have done, and waiting Receives get messages that became due sooner, no later than
	// after a push. Before that nobody else sees it, and what it touches is locked: a message that
	// was acknowledged is handed out to nobody, even where its lease ends before the commit.
	//
	// The view checks at its first call that the transaction is one of the queue's own database, and
	// returns an [InvalidError] for another one, which it leaves alone. InTx itself returns an
	// InvalidError for a tx of a type that the backend does not take.
	//
	// Calls run in the caller's goroutine and under its context, one after the other, and are never
	// tried again. Outcomes such as [ErrDuplicate] leave the transaction usable. After any other
	// error it must be rolled back. The error of a call that has ended early matches its context's,
	// and never [ErrOutcomeUnknown]: only the commit decides. The other methods of a view return
	// [ErrUnsupported], and its Close does nothing. The view is used until the transaction ends, and
	// is not for concurrent use. It belongs to [Transactions].
	InTx(tx any) (Queue, error)

	// Close releases this handle and wakes its waiting Receives. Messages stay in the store; leases
	// that this handle holds end in their own time. When it has returned, no goroutine of the
	// handle runs. The exception is a goroutine that waits for a store that does not reply: Close
	// waits for it for a bounded time. A second Close does nothing.
	Close() error
}

// DeadIDs converts a result of ListDead into a result of ListDeadIDs.
func DeadIDs(page []DeadLetter, next string, err error) ([]string, string, error) {
	var ids []string
	for _, l := range page {
		ids = append(ids, l.ID)
	}
	return ids, next, err
}
