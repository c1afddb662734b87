package delayq

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// described is a value that an error shows as it is, without quotes.
type described string

func validContext(ctx context.Context) error {
	if ctx == nil {
		return backend.Invalid("context", described("nil"), "context.Background() or one made from it")
	}
	return nil
}

func validName(name string, traits backend.Traits) error {
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

// portable leaves out what means something to a store: braces to a Redis Cluster, stars
// and hashes to RabbitMQ's bindings, slashes to a URL.
func portable(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:", r))
}

func (q *queue) validMessage(m *Message) error {
	if err := q.validPushID(m.ID); err != nil {
		return err
	}
	if err := validBody(m.Body, q.traits); err != nil {
		return err
	}
	if err := q.validHeaders(m.Headers); err != nil {
		return err
	}
	if m.Due.IsZero() {
		return validDelay(m.Delay, q.traits)
	}
	if m.Delay != 0 {
		return errDueAndDelay
	}
	return validDue(m.Due)
}

func (q *queue) validPushID(id string) error {
	switch {
	case q.Supports(OwnIDs):
		return validID(id)
	case id != "":
		return q.unsupported("pushes with an id")
	default:
		return nil
	}
}

func validID(id string) error {
	if id == "" || len(id) > backend.MaxID || !printable(id) {
		return backend.Invalid("id", id, "1 to 255 bytes of UTF-8 without control characters")
	}
	return nil
}

// validUnique is asked before a message without an id gets one, which nobody would push again.
func (q *queue) validUnique(m *Message) error {
	switch {
	case m.UniqueFor == 0:
		return nil
	case !q.Supports(UniqueWindows):
		return q.unsupported(UniqueWindows.String())
	case m.ID == "":
		return backend.Invalid("UniqueFor", described("without an ID"), "with an ID, which is what stays taken")
	}
	return validWindow(m.UniqueFor)
}

func validWindow(d time.Duration) error {
	if d != 0 && (d < backend.MinUnique || d > backend.MaxUnique) {
		return backend.Invalid("UniqueFor", d, fmt.Sprintf("0, or %v to %v", backend.MinUnique, backend.MaxUnique))
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

func validBody(body []byte, traits backend.Traits) error {
	limit := backend.MaxBody
	if traits.MaxBody > 0 {
		limit = traits.MaxBody
	}
	if len(body) > limit {
		return backend.Invalid("body", described(fmt.Sprintf("of %d bytes", len(body))), fmt.Sprintf("up to %d bytes", limit))
	}
	return nil
}

// reservedPrefix begins the headers that a backend may add for itself.
const reservedPrefix = "delayq-"

func (q *queue) validHeaders(headers map[string]string) error {
	if len(headers) > 0 && !q.Supports(Headers) {
		return q.unsupported("headers")
	}
	return validHeaders(headers)
}

func validHeaders(headers map[string]string) error {
	for k := range headers {
		if k == "" || len(k) > backend.MaxHeaderKey || !printable(k) {
			return backend.Invalid("header key", k, "1 to 255 bytes of UTF-8 without control characters")
		}
		if strings.HasPrefix(k, reservedPrefix) {
			return backend.Invalid("header key", k, `one that does not begin with "delayq-"`)
		}
	}
	if total := headerBytes(headers); total > backend.MaxHeaders {
		return backend.Invalid("headers", described(fmt.Sprintf("of %d bytes", total)),
			fmt.Sprintf("up to %d bytes in all, with %d for each header beside its key and value", backend.MaxHeaders, backend.HeaderCost))
	}
	return nil
}

func headerBytes(headers map[string]string) (total int) {
	for k, v := range headers {
		total += len(k) + len(v) + backend.HeaderCost
	}
	return total
}

func validDelay(d time.Duration, traits backend.Traits) error {
	if limit := maxDelay(traits); d < 0 || d > limit {
		return backend.Invalid("delay", d, fmt.Sprintf("0 to %v", limit))
	}
	return nil
}

func maxDelay(traits backend.Traits) time.Duration {
	if traits.MaxDelay > 0 {
		return traits.MaxDelay
	}
	return backend.MaxDelay
}

func validDue(t time.Time) error {
	if t.Before(backend.EarliestDue) || t.After(backend.LatestDue) {
		return backend.Invalid("due time", t, fmt.Sprintf("%s to %s",
			backend.EarliestDue.Format(time.RFC3339), backend.LatestDue.Format(time.RFC3339)))
	}
	return nil
}

func validLease(what string, d time.Duration) error {
	if d < backend.MinLease || d > backend.MaxLease {
		return backend.Invalid(what, d, fmt.Sprintf("%v to %v", backend.MinLease, backend.MaxLease))
	}
	return nil
}

func validLimit(limit int) error { return within("limit", limit, 1, MaxBatch) }

func within(what string, n, low, high int) error {
	if n < low || n > high {
		return backend.Invalid(what, n, fmt.Sprintf("%d to %d", low, high))
	}
	return nil
}
