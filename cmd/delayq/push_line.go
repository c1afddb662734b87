package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

// pushLine is one line of input.
type pushLine struct {
	delayq.Message
	number int
	timed  bool  // it says when it is due
	err    error // why it is bad
}

var pushFields = map[string]func(*pushLine, json.RawMessage) error{
	"id":             (*pushLine).readID,
	"body":           (*pushLine).readBody,
	"body_base64":    (*pushLine).readBytes,
	"after":          (*pushLine).readAfter,
	"due":            (*pushLine).readDue,
	"headers":        (*pushLine).readHeaders,
	"headers_base64": (*pushLine).readHeaderBytes,
	"type":           (*pushLine).readType,

	// other commands print these, and no pusher can set them
	"attempt": nil, "attempts": nil, "reason": nil, "died": nil,
}

var errTwoBodies, errTwoTimes = errors.New(`"body" and "body_base64": allowed is one of them`), errors.New(`"after" and "due": allowed is one of them`)

// read sets the message to the line's fields.
func (m *pushLine) read(text []byte) error {
	seen, err := jsonl.Into(m, text, pushFields, "id, body, body_base64, after, due, headers, headers_base64 and type")
	switch {
	case errors.Is(err, jsonl.ErrSurrogate):
		return fmt.Errorf(`%w; bytes that are none go in "body_base64" and "headers_base64"`, err)
	case err != nil:
		return err
	case seen["body"] && seen["body_base64"]:
		return errTwoBodies
	case seen["after"] && seen["due"]:
		return errTwoTimes
	}
	m.timed = seen["after"] || seen["due"]
	return nil
}

func (m *pushLine) readID(value json.RawMessage) (err error) {
	m.ID, err = jsonl.Parsed("id", value, func(s string) (string, error) {
		if s == "" {
			return s, errors.New("empty")
		}
		return s, nil
	}, "a string that is not empty")
	return err
}

func (m *pushLine) readBody(value json.RawMessage) error {
	m.Body = jsonl.Body(value)
	return nil
}

func (m *pushLine) readBytes(value json.RawMessage) (err error) {
	m.Body, err = jsonl.Parsed("body_base64", value, base64.StdEncoding.DecodeString, inBase64)
	return err
}

const inBase64 = "a string in base64"

func (m *pushLine) readAfter(value json.RawMessage) (err error) {
	m.Delay, err = jsonl.Parsed("after", value, time.ParseDuration, `a string with a duration, as "1.5s" or "30m"`)
	return err
}

func (m *pushLine) readDue(value json.RawMessage) (err error) {
	m.Due, err = jsonl.Parsed("due", value, jsonl.RFC3339, `a string with an RFC 3339 time, as "2030-01-31T18:00:00Z"`)
	return err
}

func (m *pushLine) readHeaders(value json.RawMessage) error {
	err := jsonl.Fields(value, func(key string, value json.RawMessage) error {
		s, ok := jsonl.Text(value)
		if !ok {
			return fmt.Errorf("header %q is %s: allowed is a string", jsonl.Shown(key), jsonl.Shown(string(value)))
		}
		return m.header(key, s)
	})
	return in("headers", err)
}

func (m *pushLine) readHeaderBytes(value json.RawMessage) error {
	err := jsonl.Fields(value, func(key string, value json.RawMessage) error {
		b, err := jsonl.Parsed("header "+jsonl.Shown(key), value, base64.StdEncoding.DecodeString, inBase64)
		if err != nil {
			return err
		}
		return m.header(key, string(b))
	})
	return in("headers_base64", err)
}

// in says which field an error is about.
func in(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func (m *pushLine) readType(value json.RawMessage) error {
	s, ok := jsonl.Text(value)
	if !ok {
		return fmt.Errorf("type %s: allowed is a string", jsonl.Shown(string(value)))
	}
	return m.header(delayq.TypeHeader, s)
}

func (m *pushLine) header(key, value string) error {
	if _, twice := m.Headers[key]; twice {
		return fmt.Errorf("header %q twice: allowed is once", jsonl.Shown(key))
	}
	set(&m.Headers, key, value)
	return nil
}
