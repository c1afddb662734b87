package demo

import (
	"encoding/json"
	"errors"
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

var readers = map[string]func(*message, json.RawMessage) error{
	"id":    (*message).readID,
	"delay": (*message).readDelay,
	"due":   (*message).readDue,
	"body":  (*message).readBody,
}

// errNotAllowed is what a parser says that [jsonl.Parsed] calls. That tells what is allowed.
var errNotAllowed = errors.New("not allowed")

func (m *message) readID(value json.RawMessage) (err error) {
	m.id, err = jsonl.Parsed("id", value, func(s string) (string, error) {
		if s == "" || len(s) > backend.MaxID || strings.IndexFunc(s, unicode.IsControl) >= 0 {
			return "", errNotAllowed
		}
		return s, nil
	}, fmt.Sprintf("a string of 1 to %d bytes without control characters", backend.MaxID))
	return err
}

func (m *message) readDelay(value json.RawMessage) (err error) {
	m.wait, err = jsonl.Parsed("delay", value, func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if d < 0 {
			err = errNotAllowed
		}
		return d, err
	}, `a string with a Go duration, 0 or more, as "1.5s" or "30m"`)
	return err
}

func (m *message) readDue(value json.RawMessage) (err error) {
	m.due, err = jsonl.Parsed("due", value, func(s string) (time.Time, error) {
		due, err := jsonl.RFC3339(s)
		if due.Before(backend.EarliestDue) || due.After(backend.LatestDue) {
			err = errNotAllowed
		}
		return due, err
	}, fmt.Sprintf(`a string with an RFC 3339 time from %d to %d, as "2030-01-31T18:00:00Z"`, backend.EarliestDue.Year(), backend.LatestDue.Year()))
	return err
}

func (m *message) readBody(value json.RawMessage) error {
	if m.body = jsonl.Body(value); len(m.body) > backend.MaxBody {
		return fmt.Errorf("body of %d bytes: allowed are up to %d", len(m.body), backend.MaxBody)
	}
	return nil
}
