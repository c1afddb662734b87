package wire

import (
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// The bodies of requests and replies, in the order of the methods of [backend.Queue].

// Messages asks for pushes.
type Messages struct {
	Messages []Message `json:"messages"`
}

// Pushed is the reply to a push of one message.
type Pushed struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitempty"`
}

// Results is the reply to a call on several messages: a result for each, in their order.
type Results struct {
	Results []Result `json:"results"`
}

// Result is the outcome for one message. An empty one is a success without a value.
type Result struct {
	ID         string     `json:"id,omitempty"`
	Duplicate  bool       `json:"duplicate,omitempty"`
	LeaseUntil *time.Time `json:"lease_until,omitempty"`
	Message    *Info      `json:"message,omitempty"`
	Error      *Problem   `json:"error,omitempty"`
}

// Receive asks for messages that are due.
type Receive struct {
	Limit       int      `json:"limit,omitempty"`
	LeaseFor    Duration `json:"lease_for,omitempty"`
	Wait        Duration `json:"wait,omitempty"`
	KeepExpired bool     `json:"keep_expired,omitempty"`
}

// Received is the reply to a Receive.
type Received struct {
	Messages []Delivery `json:"messages"`
}

// EndReceive ends a Receive that waits. Key is the Idempotency-Key of that request.
type EndReceive struct {
	Key string `json:"key"`
}

// Leases names deliveries.
type Leases struct {
	Leases []string `json:"leases"`
}

// Extend asks for new ends of leases.
type Extend struct {
	Leases   []string `json:"leases"`
	LeaseFor Duration `json:"lease_for"`
}

// Nack gives messages back.
type Nack struct {
	Messages []Return `json:"messages"`
}

// Return gives one message back. Without headers, the message keeps its own.
type Return struct {
	Lease         string             `json:"lease"`
	After         Duration           `json:"after,omitempty"`
	Untouched     bool               `json:"untouched,omitempty"` // as a release does
	Headers       *map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte  `json:"headers_base64,omitempty"`
}

// ReturnOf returns a nack as JSON has it.
func ReturnOf(r backend.Return) Return {
	w := Return{Lease: Lease(r.Lease), After: Duration(r.Delay), Untouched: r.Untouched}
	if r.NewHeaders {
		texts, others := headersOf(r.Headers)
		if texts == nil {
			texts = map[string]string{} // none, which differs from the old ones
		}
		w.Headers, w.HeadersBase64 = &texts, others
	}
	return w
}

// Read is the inverse of ReturnOf.
func (r *Return) Read() (backend.Return, error) {
	l, err := ReadLease(r.Lease)
	back := backend.Return{Lease: l, Delay: time.Duration(r.After), Untouched: r.Untouched}
	if err != nil || r.Headers == nil && r.HeadersBase64 == nil {
		return back, err
	}
	var texts map[string]string
	if r.Headers != nil {
		texts = *r.Headers
	}
	back.NewHeaders = true
	back.Headers, err = readHeaders(texts, r.HeadersBase64)
	return back, err
}

// Dead makes messages dead letters.
type Dead struct {
	Messages []DeadLetterRequest `json:"messages"`
}

// DeadLetterRequest makes one message a dead letter.
type DeadLetterRequest struct {
	Lease        string `json:"lease"`
	Reason       string `json:"reason,omitempty"`
	ReasonBase64 []byte `json:"reason_base64,omitempty"`
}

// TextOrBytes returns a string as text where it is UTF-8, and else as bytes.
func TextOrBytes(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// IDs names messages.
type IDs struct {
	IDs []string `json:"ids"`
}

// Reschedule gives messages new due times.
type Reschedule struct {
	Messages []Move `json:"messages"`
}

// Move gives one message a new due time.
type Move struct {
	ID    string     `json:"id"`
	Due   *time.Time `json:"due,omitempty"`
	After Duration   `json:"after,omitempty"`
}

// Page is a page of messages. Next is left out on the last one.
type Page struct {
	Messages []Info `json:"messages"`
	Next     string `json:"next,omitempty"`
}

// PageOfIDs is a page of ids of dead letters.
type PageOfIDs struct {
	IDs  []string `json:"ids"`
	Next string   `json:"next,omitempty"`
}

// DeadFilter selects dead letters: those that match all fields that are set.
type DeadFilter struct {
	DiedBefore   *time.Time        `json:"died_before,omitempty"`
	ReasonPrefix string            `json:"reason_prefix,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
}

// Letters names dead letters, by their ids or by a filter.
type Letters struct {
	IDs    []string    `json:"ids,omitempty"`
	Filter *DeadFilter `json:"filter,omitempty"`
}

// Changed is the reply to a call on all dead letters of a filter.
type Changed struct {
	Changed int `json:"changed"`
}

// Trim deletes dead letters beyond a retention.
type Trim struct {
	MaxAge   Duration `json:"max_age,omitempty"`
	MaxCount int      `json:"max_count,omitempty"`
}

// Removed is the reply to a purge, and to a trim.
type Removed struct {
	Removed int64 `json:"removed"`
	More    bool  `json:"more,omitempty"`
}

// Pause holds the messages of a queue back.
type Pause struct {
	For   *Duration  `json:"for,omitempty"` // nil for no end
	Until *time.Time `json:"until,omitempty"`
}

// Queues lists queues.
type Queues struct {
	Queues []string `json:"queues"`
}

// Done is the reply to a call without a result.
type Done struct{}
