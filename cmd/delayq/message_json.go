package main

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
)

// messageJSON is a message as commands show it. "delayq push" reads the same names for the fields
// that a pusher sets. A body is "body" where it is text, else "body_base64"; so are the values of
// headers.
type messageJSON struct {
	ID            string            `json:"id,omitempty"`
	Body          *string           `json:"body,omitempty"`
	BodyBase64    []byte            `json:"body_base64,omitempty"`
	Due           *time.Time        `json:"due,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"`
	Attempt       int               `json:"attempt,omitempty"`  // of a leased message
	Attempts      *int              `json:"attempts,omitempty"` // of one that waits or is dead
	Reason        *string           `json:"reason,omitempty"`
	Died          *time.Time        `json:"died,omitempty"`
	Error         string            `json:"error,omitempty"`
}

// contentJSON has the fields of all messages.
func contentJSON(id string, body []byte, headers map[string]string, due time.Time) messageJSON {
	m := messageJSON{ID: id}
	if !due.IsZero() {
		m.Due = writable(due)
	}
	if utf8.Valid(body) {
		text := string(body)
		m.Body = &text
	} else {
		m.BodyBase64 = body
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
	m.Attempt = d.Attempt
	return m
}

func waitingJSON(p delayq.Pending) messageJSON {
	m := contentJSON(p.ID, p.Body, p.Headers, p.Due)
	m.Attempts = &p.Attempts
	if p.Err != nil {
		m.Error = p.Err.Error()
	}
	return m
}

func deadJSON(l delayq.DeadLetter) messageJSON {
	m := contentJSON(l.ID, l.Body, l.Headers, l.Due)
	m.Attempts, m.Reason, m.Died = &l.Attempts, &l.Reason, writable(l.Died)
	return m
}

// line is a value as one line of JSON.
func line(value any) ([]byte, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return append(b, '\n'), nil
}
