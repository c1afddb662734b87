package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// Content is the part of a message that its pusher writes. Bytes that are UTF-8 are text, others
// are base64, and so are large texts that are mostly escapes as JSON.
type Content struct {
	Body          Text              `json:"body,omitempty"`
	BodyBase64    []byte            `json:"body_base64,omitempty"`
	Headers       map[string]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]byte `json:"headers_base64,omitempty"`
}

// Text is a body that is UTF-8. It reads any JSON: of a string its characters, of another value its
// JSON as it was sent.
type Text string

// UnmarshalJSON is called by encoding/json.
func (t *Text) UnmarshalJSON(value []byte) error {
	switch {
	case string(value) == "null":
		*t = ""
	case value[0] == '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return fmt.Errorf("reading a text: %w", err)
		}
		*t = Text(s)
	default:
		*t = Text(value)
	}
	return nil
}

// ContentOf returns the content of a message.
func ContentOf(body []byte, headers map[string]string) (c Content) {
	if utf8.Valid(body) && !longAsText(body) {
		c.Body = Text(body)
	} else {
		c.BodyBase64 = body
	}
	c.Headers, c.HeadersBase64 = headersOf(headers)
	return c
}

// longAsText reports whether a large text takes so much more room as JSON that it may not fit into a
// request: base64 takes a third more.
func longAsText(body []byte) bool {
	const large = 1 << 20
	if len(body) < large {
		return false
	}
	// U+2028 and U+2029 are three bytes, and escaped as JSON, for the sake of JavaScript.
	separators := bytes.Count(body, []byte("\u2028")) + bytes.Count(body, []byte("\u2029"))
	escapes := separators * (len(`\u2028`) - len("\u2028"))
	for _, b := range body {
		switch {
		case b == '"' || b == '\\' || b == '\n' || b == '\r' || b == '\t':
			escapes++
		case b < ' ':
			escapes += len(`\u0000`) - 1
		}
	}
	return escapes > len(body)/3
}

func headersOf(headers map[string]string) (texts map[string]string, others map[string][]byte) {
	for k, v := range headers {
		if utf8.ValidString(v) {
			if texts == nil {
				texts = make(map[string]string, len(headers))
			}
			texts[k] = v
			continue
		}
		if others == nil {
			others = make(map[string][]byte)
		}
		others[k] = []byte(v)
	}
	return texts, others
}

// Read returns body and headers.
func (c *Content) Read() (body []byte, headers map[string]string, err error) {
	if c.Body != "" && c.BodyBase64 != nil {
		return nil, nil, backend.Invalid("body", Described("twice"), "one of body and body_base64")
	}
	body = c.BodyBase64
	if c.Body != "" {
		body = []byte(c.Body)
	}
	headers, err = readHeaders(c.Headers, c.HeadersBase64)
	return body, headers, err
}

func readHeaders(texts map[string]string, others map[string][]byte) (map[string]string, error) {
	if len(others) == 0 {
		return texts, nil
	}
	all := make(map[string]string, len(texts)+len(others))
	for k, v := range texts {
		all[k] = v
	}
	for k, v := range others {
		if _, twice := all[k]; twice {
			return nil, backend.Invalid("header "+k, Described("twice"), "in one of headers and headers_base64")
		}
		all[k] = string(v)
	}
	return all, nil
}

// Described is a value that an error shows as it is, without quotes.
type Described string
