package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/delayq/delayq/backend"
)

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// TypePrefix begins the type of each problem. Its code follows.
const TypePrefix = "urn:delayq:problem:"

// Problem is an error (RFC 9457). Code says which one.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`

	Field     string `json:"field,omitempty"`     // invalid: the argument
	Value     string `json:"value,omitempty"`     // invalid: as given, shortened
	Allowed   string `json:"allowed,omitempty"`   // invalid: the allowed values
	Backend   string `json:"backend,omitempty"`   // unsupported
	Operation string `json:"operation,omitempty"` // unsupported
	Unknown   bool   `json:"outcome_unknown,omitempty"`
}

// The codes of the errors of package backend, and of the server's own.
const (
	Invalid        = "invalid"
	Unsupported    = "unsupported"
	NotFound       = "not-found"
	InFlight       = "in-flight"
	LeaseLost      = "lease-lost"
	Duplicate      = "duplicate"
	Full           = "full"
	Unconfirmed    = "unconfirmed"
	Unavailable    = "unavailable"
	OutcomeUnknown = "outcome-unknown"

	Internal      = "internal"
	Unauthorized  = "unauthorized"
	Forbidden     = "forbidden"
	NoSuchPath    = "no-such-path"
	BadMethod     = "method-not-allowed"
	BadMediaType  = "unsupported-media-type"
	TooLarge      = "too-large"
	TooMany       = "too-many-requests"
	KeyReused     = "idempotency-key-reused"
	OtherServer   = "other-server"
	ForeignOrigin = "foreign-origin"
	ReplyFull     = "reply-full"
)

// ErrReplyFull is the error of a message that did not fit into the reply.
var ErrReplyFull = errors.New("the reply is full: get this message by another request")

// kind is what all problems of a code share.
type kind struct {
	status   int
	title    string
	sentinel error // nil for the server's own
}

var kinds = map[string]kind{
	Invalid:        {http.StatusBadRequest, "A value cannot be used", backend.ErrInvalid},
	Unsupported:    {http.StatusNotImplemented, "The store cannot do that", backend.ErrUnsupported},
	NotFound:       {http.StatusNotFound, "No such message", backend.ErrNotFound},
	InFlight:       {http.StatusConflict, "A worker holds the message", backend.ErrInFlight},
	LeaseLost:      {http.StatusConflict, "The lease has ended", backend.ErrLeaseLost},
	Duplicate:      {http.StatusConflict, "The id is taken", backend.ErrDuplicate},
	Full:           {http.StatusInsufficientStorage, "The queue is full", backend.ErrFull},
	Unconfirmed:    {http.StatusGatewayTimeout, "Stored, but not confirmed", backend.ErrUnconfirmed},
	Unavailable:    {http.StatusServiceUnavailable, "The store cannot be reached", backend.ErrUnavailable},
	OutcomeUnknown: {http.StatusGatewayTimeout, "It may have happened or not", backend.ErrOutcomeUnknown},

	Internal:      {http.StatusInternalServerError, "The server failed", nil},
	Unauthorized:  {http.StatusUnauthorized, "A token is needed", nil},
	Forbidden:     {http.StatusForbidden, "The token has no such right", nil},
	NoSuchPath:    {http.StatusNotFound, "No such path", nil},
	BadMethod:     {http.StatusMethodNotAllowed, "The path has another method", nil},
	BadMediaType:  {http.StatusUnsupportedMediaType, "The body is not JSON", nil},
	TooLarge:      {http.StatusRequestEntityTooLarge, "The body is too large", nil},
	TooMany:       {http.StatusTooManyRequests, "Too many requests wait", nil},
	KeyReused:     {http.StatusUnprocessableEntity, "The Idempotency-Key was used for another request", nil},
	OtherServer:   {http.StatusPreconditionFailed, "What became of the first try is not known", nil},
	ForeignOrigin: {http.StatusForbidden, "The request comes from another site", nil},
	ReplyFull:     {http.StatusRequestEntityTooLarge, "The reply is full", ErrReplyFull},
}

// ofBackend are the codes of sentinels, those first that say more.
var ofBackend = []string{
	Invalid, Unsupported, NotFound, InFlight, LeaseLost, Duplicate, Full, Unconfirmed, Unavailable, OutcomeUnknown, ReplyFull,
}

// Codes returns the codes that a server may use.
func Codes() []string {
	codes := make([]string, 0, len(kinds))
	for code := range kinds {
		codes = append(codes, code)
	}
	return codes
}

// New returns a problem of a code.
func New(code, detail string) *Problem {
	k := kinds[code]
	return &Problem{
		Type: TypePrefix + code, Title: k.title, Status: k.status, Code: code, Detail: detail,
		Unknown: code == Internal,
	}
}

// fields are the names in JSON of arguments that have others in Go.
var fields = map[string]string{
	"UniqueFor": "unique_for", "Replace": "replace", "AfterInFlight": "replace_after_in_flight", "MaxWait": "max_wait", "Spread": "spread",
	"delay": "after", "due time": "due", "header key": "headers", "Attempts": "limits.attempts", "HandlerTimeout": "limits.handler_timeout",
	"ExpiresAfter": "limits.expires_after", "Expires": "limits.expires", "DeadLetterExpired": "limits.dead_letter_expired",
	"PauseFor": "for", "PauseUntil": "until",
}

// ProblemOf returns the problem that says what an error says.
func ProblemOf(err error) *Problem {
	p := New(codeOf(err), err.Error())
	p.Unknown = p.Unknown || errors.Is(err, backend.ErrOutcomeUnknown)
	var invalid *backend.InvalidError
	var unsupported *backend.UnsupportedError
	switch {
	case errors.As(err, &invalid):
		p.Field, p.Value, p.Allowed = cmp.Or(fields[invalid.What], invalid.What), invalid.Value, invalid.Allowed
		p.Detail = strings.Replace(p.Detail, "invalid "+invalid.What, "invalid "+p.Field, 1)
	case errors.As(err, &unsupported):
		p.Backend, p.Operation = unsupported.Backend, unsupported.Op
	}
	return p
}

func codeOf(err error) string {
	for _, code := range ofBackend {
		if errors.Is(err, kinds[code].sentinel) {
			return code
		}
	}
	if errors.Is(err, backend.ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Unavailable // the server is stopping, or the store has not replied in time
	}
	return Internal
}

// Err returns the error that the problem stands for. It matches the same sentinels.
func (p *Problem) Err() error {
	if p == nil {
		return nil
	}
	switch p.Code {
	case Invalid:
		return &remote{p.Detail, []error{&backend.InvalidError{What: p.Field, Value: p.Value, Allowed: p.Allowed}}}
	case Unsupported:
		return &remote{p.Detail, []error{&backend.UnsupportedError{Backend: p.Backend, Op: p.Operation}}}
	case TooLarge:
		return &remote{p.Detail, []error{&backend.InvalidError{What: "request", Value: "too large", Allowed: p.Detail}}}
	case TooMany:
		return &remote{p.Title + ": " + p.Detail, []error{backend.ErrUnavailable}}
	case Internal: // the store may have failed after the change
		is := []error{backend.ErrUnavailable, backend.ErrOutcomeUnknown}
		return &remote{p.Title + ": " + p.Detail, is}
	}
	var is []error
	if s := kinds[p.Code].sentinel; s != nil {
		is = append(is, s)
	}
	if p.Unknown && p.Code != OutcomeUnknown {
		is = append(is, backend.ErrOutcomeUnknown)
	}
	if is == nil { // a code of a newer server, or one that no repetition helps
		return &remote{p.Title + ": " + p.Detail, nil}
	}
	return &remote{p.Detail, is}
}

// remote is an error of the server: its text, and what it matches.
type remote struct {
	text string
	is   []error
}

func (e *remote) Error() string { return e.text }

// Unwrap returns what the error matches.
func (e *remote) Unwrap() []error { return e.is }
