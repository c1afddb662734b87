package delayq

import (
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/valid"
)

// Limits are the limits of one message, which are stored with it. Every consumer keeps them,
// whatever its own options say: Attempts replaces [MaxAttempts], and HandlerTimeout replaces
// [Timeout]. An expired message is not handed out; Receive, ReceiveBatch and Consume delete it or
// make it a dead letter, and go on waiting.
//
// The limits stay with the message when it is nacked, rescheduled, dead and redriven. A redriven
// message is due at once, so that ExpiresAfter counts from then; one whose Expires has passed
// expires again. A push with limits needs [KeepingHeaders].
type Limits = backend.Limits

// Attempts sets after how many failures the message becomes a dead letter, 1 to 2^30, whatever
// [MaxAttempts] says. It needs [CountingAttempts] too.
func Attempts(n int) PushOption {
	return limiting(func(l *Limits) error {
		l.Attempts = n
		return valid.Within("Attempts", n, 1, valid.MaxAttempts)
	})
}

// HandlerTimeout sets how long a handler may take for the message, 1 ms to 24 h, whatever [Timeout]
// says. What happens then is the same.
func HandlerTimeout(d time.Duration) PushOption {
	return limiting(func(l *Limits) error {
		l.HandlerTimeout = d
		return valid.Timeout("HandlerTimeout", d)
	})
}

// ExpiresAfter sets how long after its due time the message may be handed out, 1 ms to a hundred
// years by the store's clock, rounded up to the store's resolution. A message that a worker got in
// time does not expire while its lease lasts. A retry or a reschedule counts from the new due time.
// After a lease that ended, the old due time counts.
//
// An expired message is deleted when it would be handed out, or becomes a dead letter with
// [DeadLetterExpired].
func ExpiresAfter(d time.Duration) PushOption {
	return limiting(func(l *Limits) error {
		l.ExpiresAfter = d
		return valid.Expiry(d)
	})
}

// Expires sets the time until which the message may be handed out, from 1970 to 2200, by the
// store's clock. It is like [ExpiresAfter] otherwise; with both, the earlier time counts. Push
// returns [ErrInvalid] for a time before that of [At] with [Spread] added.
func Expires(t time.Time) PushOption {
	return limiting(func(l *Limits) error {
		l.Expires = t
		return valid.Due(t)
	})
}

// DeadLetterExpired makes the message a dead letter when it expires, instead of deleting it. The
// reason is the text of [ErrExpired]. It needs [ExpiresAfter] or [Expires].
func DeadLetterExpired() PushOption {
	return limiting(func(l *Limits) error {
		l.DeadLetterExpired = true
		return nil
	})
}

// limiting returns an option that sets a limit. The message may share its Limits with others.
func limiting(set func(*Limits) error) PushOption {
	return func(m *Message) error {
		var l Limits
		if m.Limits != nil {
			l = *m.Limits
		}
		m.Limits = &l
		return set(&l)
	}
}

// expired takes the limits of a delivery out of its headers, and reports whether it has expired. Its
// lease ends at until, which the store may have rounded up: only what remains without that is the
// time of the hand-out for sure.
func (q *queue) expired(d *Delivery, until time.Time) bool {
	d.limits = limits.Take(&d.Headers)
	if d.limits != nil && d.limits.ExpiredAt(until.Add(-q.lease-q.traits.Resolution), d.Due) {
		d.expired = ErrExpired
	}
	return d.expired != nil
}
