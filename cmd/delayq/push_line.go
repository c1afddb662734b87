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

func (m *pushLine) readID(value json.RawMessage) error {
	id, ok := jsonl.Text(value)
	if !ok || id == "" {
		return fmt.Errorf("id %s: allowed is a string that is not empty", jsonl.Shown(string(value)))
	}
	m.ID = id
	return nil
}

func (m *pushLine) readBody(value json.RawMessage) error {
	m.Body = value
	if s, ok := jsonl.Text(value); ok {
		m.Body = []byte(s)
	}
	return nil
}

func (m *pushLine) readBytes(value json.RawMessage) (err error) {
	m.Body, err = bytesOfJSON("body_base64", value)
	return err
}

func bytesOfJSON(what string, value json.RawMessage) ([]byte, error) {
	s, ok := jsonl.Text(value)
	b, err := base64.StdEncoding.DecodeString(s)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s %s: allowed is a string in base64", what, jsonl.Shown(string(value)))
	}
	return b, nil
}

func (m *pushLine) readAfter(value json.RawMessage) (err error) {
	s, ok := jsonl.Text(value)
	if ok {
		m.Delay, err = time.ParseDuration(s)
	}
	if !ok || err != nil {
		return fmt.Errorf(`after %s: allowed is a string with a duration, as "1.5s" or "30m"`, jsonl.Shown(string(value)))
	}
	return nil
}

func (m *pushLine) readDue(value json.RawMessage) (err error) {
	s, ok := jsonl.Text(value)
	if ok {
		m.Due, err = time.Parse(time.RFC3339, s)
	}
	if !ok || err != nil {
		return fmt.Errorf(`due %s: allowed is a string with an RFC 3339 time, as "2030-01-31T18:00:00Z"`, jsonl.Shown(string(value)))
	}
	return nil
}

func (m *pushLine) readHeaders(value json.RawMessage) error {
	return m.eachHeader("headers", value, func(key string, value json.RawMessage) error {
		s, ok := jsonl.Text(value)
		if !ok {
			return fmt.Errorf("header %q is %s: allowed is a string", jsonl.Shown(key), jsonl.Shown(string(value)))
		}
		return m.header(key, s)
	})
}

func (m *pushLine) readHeaderBytes(value json.RawMessage) error {
	return m.eachHeader("headers_base64", value, func(key string, value json.RawMessage) error {
		b, err := bytesOfJSON("header "+jsonl.Shown(key), value)
		if err != nil {
			return err
		}
		return m.header(key, string(b))
	})
}

func (m *pushLine) eachHeader(what string, value json.RawMessage, f func(string, json.RawMessage) error) error {
	if err := jsonl.Fields(value, f); err != nil {
		return fmt.Errorf("%s: %w", what, err)
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
