package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/delayq/delayq/backend"
)

// read sets the message to what a line says.
func (m *message) read(text []byte) error {
	seen := make(map[string]bool, len(readers))
	err := eachField(text, func(name string, value json.RawMessage) error {
		read, known := readers[name]
		switch {
		case !known:
			return fmt.Errorf("field %q: allowed are id, delay, due and body", shown(name))
		case seen[name]:
			return fmt.Errorf("field %q twice: allowed is once", name)
		}
		seen[name] = true
		return read(m, value)
	})
	if err == nil && seen["delay"] && seen["due"] {
		return errBothTimes
	}
	return err
}

// eachField calls f for each field of a JSON object, in order. Unlike a decoder into a struct it
// tells fields apart that differ in case, or that come twice.
func eachField(text []byte, f func(name string, value json.RawMessage) error) error {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return notJSON(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return fmt.Errorf("%s: allowed is a JSON object", excerpt(whole))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err)
		}
		if err := f(name.(string), value); err != nil { // the key of an object is a string
			return err
		}
	}
	return nil
}

func notJSON(err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("not JSON: %w", err)
	}
	if strings.HasPrefix(syntax.Error(), "unexpected end") {
		return fmt.Errorf("not JSON: it ends too early, after byte %d", syntax.Offset)
	}
	return fmt.Errorf("not JSON: %w, at byte %d", err, syntax.Offset)
}

// excerpt is a JSON value as an error shows it.
func excerpt(value json.RawMessage) string { return shown(string(value)) }

var readers = map[string]func(*message, json.RawMessage) error{
	"id":    (*message).readID,
	"delay": (*message).readDelay,
	"due":   (*message).readDue,
	"body":  (*message).readBody,
}

func (m *message) readID(value json.RawMessage) error {
	id, ok := text(value)
	if !ok || id == "" || len(id) > backend.MaxID || strings.IndexFunc(id, unicode.IsControl) >= 0 {
		return fmt.Errorf("id %s: allowed is a string of 1 to %d bytes without control characters", excerpt(value), backend.MaxID)
	}
	m.id = id
	return nil
}

func (m *message) readDelay(value json.RawMessage) (err error) {
	s, ok := text(value)
	if ok {
		m.wait, err = time.ParseDuration(s)
	}
	if !ok || err != nil || m.wait < 0 {
		return fmt.Errorf(`delay %s: allowed is a string with a Go duration, 0 or more, as "1.5s" or "30m"`, excerpt(value))
	}
	return nil
}

func (m *message) readDue(value json.RawMessage) (err error) {
	s, ok := text(value)
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
	if s, ok := text(value); ok {
		m.body = []byte(s)
	}
	if len(m.body) > backend.MaxBody {
		return fmt.Errorf("body of %d bytes: allowed are up to %d", len(m.body), backend.MaxBody)
	}
	return nil
}

// text is the text of a JSON string; ok is false for any other value.
func text(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}
