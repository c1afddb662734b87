// Package valid checks the arguments of a queue that need no more than the traits of its store. Each
// check returns nil or a [backend.InvalidError] that says what is allowed.
package valid

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// Described is a value that an error shows as it is, without quotes.
type Described string

// The largest values of options.
const (
	MaxTimeout     = 24 * time.Hour // of a handler
	MaxDrain       = 24 * time.Hour
	MaxAttempts    = 1 << 30
	maxDeadLetters = 1 << 30
)

// ReservedPrefix begins the headers that the library and its backends add.
const ReservedPrefix = "delayq-"

// Feature returns a [backend.UnsupportedError] of an operation whose feature a store lacks.
func Feature(f backend.Feature, op string, traits backend.Traits) error {
	if traits.Supports(f) {
		return nil
	}
	return unsupported(op, traits)
}

func unsupported(op string, traits backend.Traits) error {
	return &backend.UnsupportedError{Backend: traits.Name, Op: op}
}

// Context checks that there is a context.
func Context(ctx context.Context) error {
	return Given("context", ctx, "context.Background() or one made from it")
}

// Given checks that what is not nil.
func Given[T comparable](what string, v T, allowed string) error {
	var none T
	if v == none {
		return backend.Invalid(what, Described("nil"), allowed)
	}
	return nil
}

// Spread checks how far a message may be spread.
func Spread(d time.Duration) error {
	if d < 0 || d > backend.MaxDelay {
		return backend.Invalid("Spread", d, fmt.Sprintf("0 to %v", backend.MaxDelay))
	}
	return nil
}

// Time checks the due time or delay of what, of which it may have one.
func Time(what string, due time.Time, delay time.Duration, traits backend.Traits) error {
	if due.IsZero() {
		return Delay(delay, traits)
	}
	if delay != 0 {
		return backend.Invalid(what, Described("with a due time and a delay"), "one of the two")
	}
	return Due(due)
}

// Quoted quotes a name or id for an error. It may be of any length when it was rejected.
func Quoted(s string) string {
	if len(s) > backend.MaxID {
		return fmt.Sprintf("%q…", s[:backend.MaxID])
	}
	return strconv.Quote(s)
}

// ID checks an id.
func ID(id string) error {
	if id == "" || len(id) > backend.MaxID || !printable(id) {
		return backend.Invalid("id", id, "1 to 255 bytes of UTF-8 without control characters")
	}
	return nil
}

// IDs returns the first id that is invalid, and its error.
func IDs(ids []string) (string, error) {
	for _, id := range ids {
		if err := ID(id); err != nil {
			return id, err
		}
	}
	return "", nil
}

// Each returns the error of the first item of a batch that check rejects.
func Each[T any](batch []T, check func(T) error) error {
	for i, item := range batch {
		if err := check(item); err != nil {
			return fmt.Errorf("message %d of the batch: %w", i, err)
		}
	}
	return nil
}

// Wait checks a MaxWait.
func Wait(d time.Duration) error {
	if d < backend.MinWait || d > backend.MaxDelay {
		return backend.Invalid("MaxWait", d, fmt.Sprintf("%v to %v", backend.MinWait, backend.MaxDelay))
	}
	return nil
}

// Window checks a UniqueFor.
func Window(d time.Duration) error {
	if d != 0 && (d < backend.MinUnique || d > backend.MaxUnique) {
		return backend.Invalid("UniqueFor", d, fmt.Sprintf("0, or %v to %v", backend.MinUnique, backend.MaxUnique))
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// Body checks the size of a body.
func Body(body []byte, traits backend.Traits) error {
	limit := backend.MaxBody
	if traits.MaxBody > 0 {
		limit = traits.MaxBody
	}
	if len(body) > limit {
		return backend.Invalid("body", Described(fmt.Sprintf("of %d bytes", len(body))), fmt.Sprintf("up to %d bytes", limit))
	}
	return nil
}

// Headers rejects reserved keys, except for one that the library has set.
func Headers(headers map[string]string, except string) error {
	for k := range headers {
		if k == "" || len(k) > backend.MaxHeaderKey || !printable(k) {
			return backend.Invalid("header key", k, "1 to 255 bytes of UTF-8 without control characters")
		}
		if strings.HasPrefix(k, ReservedPrefix) && k != except {
			return backend.Invalid("header key", k, `one that does not begin with "delayq-"`)
		}
	}
	if total := HeaderBytes(headers); total > backend.MaxHeaders {
		return backend.Invalid("headers", Described(fmt.Sprintf("of %d bytes", total)),
			fmt.Sprintf("up to %d bytes in all, with %d for each header beside its key and value", backend.MaxHeaders, backend.HeaderCost))
	}
	return nil
}

// HeaderBytes returns what headers count against their limit.
func HeaderBytes(headers map[string]string) (total int) {
	for k, v := range headers {
		total += len(k) + len(v) + backend.HeaderCost
	}
	return total
}

// Delay checks a delay from now.
func Delay(d time.Duration, traits backend.Traits) error {
	if limit := MaxDelay(traits); d < 0 || d > limit {
		return backend.Invalid("delay", d, fmt.Sprintf("0 to %v", limit))
	}
	return nil
}

// MaxDelay returns the longest delay of a store.
func MaxDelay(traits backend.Traits) time.Duration {
	if traits.MaxDelay > 0 {
		return traits.MaxDelay
	}
	return backend.MaxDelay
}

// Due checks a due time.
func Due(t time.Time) error {
	if t.Before(backend.EarliestDue) || t.After(backend.LatestDue) {
		return backend.Invalid("due time", t, fmt.Sprintf("%s to %s",
			backend.EarliestDue.Format(time.RFC3339), backend.LatestDue.Format(time.RFC3339)))
	}
	return nil
}

// Timeout checks how long a handler may take.
func Timeout(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxTimeout {
		return backend.Invalid(what, d, "1ms to 24h")
	}
	return nil
}

// Expiry checks an ExpiresAfter.
func Expiry(d time.Duration) error {
	if d < time.Millisecond || d > backend.MaxDelay {
		return backend.Invalid("ExpiresAfter", d, fmt.Sprintf("1ms to %v", backend.MaxDelay))
	}
	return nil
}

// Drain checks how long a stop may wait for handlers.
func Drain(d time.Duration) error {
	if d < 0 || d > MaxDrain {
		return backend.Invalid("Drain", d, fmt.Sprintf("0 to %v", MaxDrain))
	}
	return nil
}

// Pause checks the end of a pause, of which there may be one.
func Pause(p backend.Pause) error {
	if p.For != 0 && !p.Until.IsZero() {
		return backend.Invalid("pause", Described("with PauseFor and PauseUntil"), "one of them")
	}
	return nil
}

// PauseFor checks the length of a pause.
func PauseFor(d time.Duration) error {
	if d <= 0 || d > backend.MaxDelay {
		return backend.Invalid("PauseFor", d, fmt.Sprintf("more than 0, up to %v", backend.MaxDelay))
	}
	return nil
}

// Retention checks which dead letters are kept.
func Retention(what string, keep backend.Retention) error {
	if age := keep.MaxAge; age != 0 && (age < time.Millisecond || age > backend.MaxDelay) {
		return backend.Invalid(what+"'s age", age, fmt.Sprintf("0 for any age, or 1ms to %v", backend.MaxDelay))
	}
	return Within(what+"'s count", keep.MaxCount, 0, maxDeadLetters)
}

// Lease checks the length of a lease.
func Lease(what string, d time.Duration) error {
	if d < backend.MinLease || d > backend.MaxLease {
		return backend.Invalid(what, d, fmt.Sprintf("%v to %v", backend.MinLease, backend.MaxLease))
	}
	return nil
}

// Within checks a number.
func Within(what string, n, low, high int) error {
	if n < low || n > high {
		return backend.Invalid(what, n, fmt.Sprintf("%d to %d", low, high))
	}
	return nil
}

// Name checks a queue's name.
func Name(name string, traits backend.Traits) error {
	allowed := fmt.Sprintf("1 to %d bytes", backend.MaxName)
	if !traits.AnyName {
		allowed += ` of letters, digits and "-_.:"`
	}
	if name == "" || len(name) > backend.MaxName {
		return backend.Invalid("queue name", name, allowed)
	}
	if traits.AnyName {
		return nil
	}
	for _, r := range name {
		if !portable(r) {
			return backend.Invalid("queue name", name, allowed)
		}
	}
	return nil
}

// portable rejects characters with a meaning to a store: braces to a Redis Cluster, stars and
// hashes to RabbitMQ's bindings, slashes to a URL.
func portable(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:", r))
}
