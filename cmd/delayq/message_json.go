package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// messageJSON is a message as commands show it. "delayq push" reads the same names for the fields
// that a pusher sets, and gets the same bytes. A body is "body" where it is JSON or text, and the
// exact bytes are "body_base64" where they are neither or take several lines. Values of headers are
// text or base64.
type messageJSON struct {
	ID            string            `json:"id,omitempty"`
	Body          *bodyJSON         `json:"body,omitempty"`
	BodyBase64    []byte            `json:"body_base64,omitempty"`
	Due           *time.Time        `json:"due,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"`
	Limits        *jsonl.Limits     `json:"limits,omitempty"`
	State         string            `json:"state,omitempty"`    // where the command shows several
	Attempt       int               `json:"attempt,omitempty"`  // of a delivery
	Attempts      *int              `json:"attempts,omitempty"` // of one in the store
	LeaseUntil    *time.Time        `json:"lease_until,omitempty"`
	Reason        *string           `json:"reason,omitempty"`
	Died          *time.Time        `json:"died,omitempty"`
	UniqueUntil   *time.Time        `json:"unique_until,omitempty"`
	Error         string            `json:"error,omitempty"`
}

// contentJSON has the fields of all messages.
func contentJSON(id string, body []byte, headers map[string]string, due time.Time) messageJSON {
	m := messageJSON{ID: id}
	if !due.IsZero() {
		m.Due = writable(due)
	}
	shown := bodyJSON(body)
	if m.Body = &shown; shown.isDocument() {
		if shown = bodyJSON(onOneLine.Replace(strings.TrimSpace(string(body)))); string(shown) != string(body) {
			m.BodyBase64 = body
		}
	} else if !utf8.Valid(body) {
		m.Body, m.BodyBase64 = nil, body
	}
	for k, v := range headers {
		if utf8.ValidString(v) {
			set(&m.Headers, k, v)
		} else {
			set(&m.HeadersBase64, k, []byte(v))
		}
	}
	return m
}

// Between the values of JSON, line ends are spaces.
var onOneLine = strings.NewReplacer("\n", " ", "\r", " ")

// bodyJSON is a body that is JSON, where it is an object or an array, or else text. A number may be
// a text of digits.
type bodyJSON string

func (b bodyJSON) isDocument() bool {
	start := strings.TrimLeft(string(b), " \t\r\n")
	return start != "" && (start[0] == '{' || start[0] == '[') && utf8.ValidString(start) && json.Valid([]byte(start))
}

// MarshalJSON is called by the encoder.
func (b bodyJSON) MarshalJSON() ([]byte, error) {
	if b.isDocument() {
		return []byte(b), nil
	}
	return plainJSON(string(b))
}

// The first and the last time that JSON has a form for.
var (
	firstWritable = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastWritable  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// writable is the nearest time that can be written: other programs may have set any due time.
func writable(t time.Time) *time.Time {
	switch {
	case t.Before(firstWritable):
		t = firstWritable
	case t.After(lastWritable):
		t = lastWritable
	}
	t = t.UTC()
	return &t
}

func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

func deliveryJSON(d *delayq.Delivery) messageJSON {
	m := contentJSON(d.ID, d.Body, d.Headers, d.Due)
	limits := d.Limits()
	m.Attempt, m.Limits = d.Attempt, jsonl.LimitsOf(&limits)
	return m
}

func waitingJSON(p delayq.Pending) messageJSON {
	m := contentJSON(p.ID, p.Body, p.Headers, p.Due)
	m.Attempts, m.Limits = &p.Attempts, jsonl.LimitsOf(p.Limits)
	m.Error = errorText(p.Err)
	return m
}

// infoJSON is a message in any state.
func infoJSON(i delayq.MessageInfo) (m messageJSON) {
	switch i.State {
	case delayq.StateDone:
		m.ID = i.ID
	case delayq.StateDead:
		m = deadJSON(i)
	default:
		m = waitingJSON(i)
	}
	m.State = i.State.String()
	if !i.LeaseUntil.IsZero() {
		m.LeaseUntil = writable(i.LeaseUntil)
	}
	if !i.UniqueUntil.IsZero() {
		m.UniqueUntil = writable(i.UniqueUntil)
	}
	return m
}

func deadJSON(l delayq.DeadLetter) messageJSON {
	m := contentJSON(l.ID, l.Body, l.Headers, l.Due)
	m.Limits = jsonl.LimitsOf(l.Limits)
	m.Attempts, m.Reason, m.Died = &l.Attempts, &l.Reason, writable(l.Died)
	m.Error = errorText(l.Err)
	return m
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// line is a value as one line of JSON. The encoder takes spaces out of a body that is JSON, which
// are put back.
func line(value any) ([]byte, error) {
	text, err := plainJSON(value)
	m, ok := value.(messageJSON)
	if err != nil || !ok || m.Body == nil || !m.Body.isDocument() {
		return text, err
	}
	short, err := plainJSON(m.Body)
	const field = `"body":` // no string has that: its quotes would be escaped
	return bytes.Replace(text, append([]byte(field), bytes.TrimSpace(short)...), []byte(field+string(*m.Body)), 1), err
}

// plainJSON is JSON that shows <, > and & as they are.
func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return text.Bytes(), nil
}
