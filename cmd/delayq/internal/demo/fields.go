package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// read sets the message to what a line says.
func (m *message) read(text []byte) error {
	seen, err := jsonl.Into(m, text, readers, "id, delay, due and body")
	if err == nil && seen["delay"] && seen["due"] {
		return errBothTimes
	}
	return err
}

// excerpt is a JSON value as an error shows it.
func excerpt(value json.RawMessage) string { return jsonl.Shown(string(value)) }

var readers = map[string]func(*message, json.RawMessage) error{
	"id":    (*message).readID,
	"delay": (*message).readDelay,
	"due":   (*message).readDue,
	"body":  (*message).readBody,
}

func (m *message) readID(value json.RawMessage) error {
	id, ok := jsonl.Text(value)
	if !ok || id == "" || len(id) > backend.MaxID || strings.IndexFunc(id, unicode.IsControl) >= 0 {
		return fmt.Errorf("id %s: allowed is a string of 1 to %d bytes without control characters", excerpt(value), backend.MaxID)
	}
	m.id = id
	return nil
}

func (m *message) readDelay(value json.RawMessage) (err error) {
	s, ok := jsonl.Text(value)
	if ok {
		m.wait, err = time.ParseDuration(s)
	}
	if !ok || err != nil || m.wait < 0 {
		return fmt.Errorf(`delay %s: allowed is a string with a Go duration, 0 or more, as "1.5s" or "30m"`, excerpt(value))
	}
	return nil
}

func (m *message) readDue(value json.RawMessage) (err error) {
	s, ok := jsonl.Text(value)
	if ok {
		m.due, err = time.Parse(time.RFC3339, s)
	}
	if !ok || err != nil || m.due.Before(backend.EarliestDue) || m.due.After(backend.LatestDue) {
		return fmt.Errorf(`due %s: allowed is a string with an RFC 3339 time from %d to %d, as "2030-01-31T18:00:00Z"`,
			excerpt(value), backend.EarliestDue.Year(), backend.LatestDue.Year())
	}
	return nil
}

func (m *message) readBody(value json.RawMessage) error {
	m.body = value
	if s, ok := jsonl.Text(value); ok {
		m.body = []byte(s)
	}
	if len(m.body) > backend.MaxBody {
		return fmt.Errorf("body of %d bytes: allowed are up to %d", len(m.body), backend.MaxBody)
	}
	return nil
}
