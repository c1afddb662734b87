package jsonl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// A Message is a message as a line has it.
type Message struct {
	delayq.Message
	Timed bool // it says when it is due

	exact []byte // of body_base64
}

// messageFields are all fields that a message may have.
const messageFields = "id, body, body_base64, after, due, headers, headers_base64, type and limits"

var messageReaders = map[string]func(*Message, json.RawMessage) error{
	"id":             (*Message).readID,
	"body":           (*Message).readBody,
	"body_base64":    (*Message).readBytes,
	"after":          (*Message).readAfter,
	"due":            (*Message).readDue,
	"headers":        (*Message).readHeaders,
	"headers_base64": (*Message).readHeaderBytes,
	"type":           (*Message).readType,
	"limits":         (*Message).readLimits,

	// other commands print these, and no pusher can set them
	"state": nil, "attempt": nil, "attempts": nil, "lease_until": nil, "reason": nil, "died": nil, "unique_until": nil,
}

var (
	errTwoBodies = errors.New(`"body" and "body_base64" differ: allowed is one of them`)
	errTwoTimes  = errors.New(`"after" and "due": allowed is one of them`)
)

// Read sets the message to the line's fields.
func (m *Message) Read(text []byte) error {
	seen, err := Into(m, text, messageReaders, messageFields)
	switch {
	case errors.Is(err, ErrSurrogate):
		return fmt.Errorf(`%w; bytes that are none go in "body_base64" and "headers_base64"`, err)
	case err != nil:
		return err
	case seen["body"] && seen["body_base64"] && !sameJSON(m.Body, m.exact):
		return errTwoBodies
	case seen["after"] && seen["due"]:
		return errTwoTimes
	}
	m.Timed = seen["after"] || seen["due"]
	if seen["body_base64"] {
		m.Body = m.exact
	}
	return nil
}

// sameJSON compares JSON but for its white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

func (m *Message) readID(value json.RawMessage) (err error) {
	m.ID, err = Parsed("id", value, func(s string) (string, error) {
		if s == "" {
			return s, errors.New("empty")
		}
		return s, nil
	}, "a string that is not empty")
	return err
}

func (m *Message) readBody(value json.RawMessage) error {
	m.Body = body(value)
	return nil
}

func (m *Message) readBytes(value json.RawMessage) (err error) {
	m.exact, err = Parsed("body_base64", value, base64.StdEncoding.DecodeString, inBase64)
	return err
}

const inBase64 = "a string in base64"

func (m *Message) readAfter(value json.RawMessage) (err error) {
	m.Delay, err = Parsed("after", value, human.Duration, allowedDuration)
	return err
}

func (m *Message) readDue(value json.RawMessage) (err error) {
	m.Due, err = Parsed("due", value, readTime, allowedTime)
	return err
}

const allowedDuration = "a string with a duration, as " + human.Durations

const allowedTime = "a string with a time, as " + human.Times

func readTime(text string) (time.Time, error) { return human.Time(text, time.Now()) }

func (m *Message) readHeaders(value json.RawMessage) error {
	err := Fields(value, func(key string, value json.RawMessage) error {
		s, ok := Text(value)
		if !ok {
			return fmt.Errorf("header %q is %s: allowed is a string", Shown(key), Shown(string(value)))
		}
		return m.header(key, s)
	})
	return in("headers", err)
}

func (m *Message) readHeaderBytes(value json.RawMessage) error {
	err := Fields(value, func(key string, value json.RawMessage) error {
		b, err := Parsed("header "+Shown(key), value, base64.StdEncoding.DecodeString, inBase64)
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

func (m *Message) readType(value json.RawMessage) error {
	s, ok := Text(value)
	if !ok {
		return fmt.Errorf("type %s: allowed is a string", Shown(string(value)))
	}
	return m.header(delayq.TypeHeader, s)
}

func (m *Message) header(key, value string) error {
	if _, twice := m.Headers[key]; twice {
		return fmt.Errorf("header %q twice: allowed is once", Shown(key))
	}
	if m.Headers == nil {
		m.Headers = make(map[string]string)
	}
	m.Headers[key] = value
	return nil
}
