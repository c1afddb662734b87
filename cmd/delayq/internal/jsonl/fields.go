package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Fields calls f for each field of a JSON object, in order. Unlike a decoder into a struct it
// tells fields apart that differ in case, or that come twice. A name or a string value with half a
// surrogate pair is rejected with [ErrSurrogate]; objects and arrays are passed on unseen.
func Fields(text []byte, f func(name string, value json.RawMessage) error) error {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return notJSON(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return fmt.Errorf("%s: allowed is a JSON object", Shown(string(whole)))
	}
	for d.More() {
		from := d.InputOffset()
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		written := text[from:d.InputOffset()]
		written = written[bytes.IndexByte(written, '"'):] // after a comma and spaces
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err)
		}
		if err := errors.Join(wholeCharacters(written), wholeCharacters(value)); err != nil {
			return fmt.Errorf("field %s: %w", Shown(string(written)), err)
		}
		if err := f(name.(string), value); err != nil { // the key of an object is a string
			return err
		}
	}
	return nil
}

// Into sets the fields of m from a JSON object, each by its reader, and returns those that it set.
// It rejects a field without a reader, and one that comes twice. Where the reader is nil, it
// ignores the field.
func Into[T any](m *T, text []byte, readers map[string]func(*T, json.RawMessage) error, allowed string) (map[string]bool, error) {
	seen := make(map[string]bool, len(readers))
	return seen, Fields(text, func(name string, value json.RawMessage) error {
		read, known := readers[name]
		switch {
		case !known:
			return fmt.Errorf("field %q: allowed are %s", Shown(name), allowed)
		case read == nil:
			return nil
		case seen[name]:
			return fmt.Errorf("field %q twice: allowed is once", name)
		}
		seen[name] = true
		return read(m, value)
	})
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

// Text is the text of a JSON string; ok is false for any other value.
func Text(value json.RawMessage) (s string, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(value, &s) == nil
}

// Parsed is the value of a field whose JSON string parse reads. The error of any other value says
// what is allowed.
func Parsed[T any](field string, value json.RawMessage, parse func(string) (T, error), allowed string) (T, error) {
	if s, ok := Text(value); ok {
		if v, err := parse(s); err == nil {
			return v, nil
		}
	}
	var none T
	return none, fmt.Errorf("%s %s: allowed is %s", field, Shown(string(value)), allowed)
}

// body is a JSON string's text, or any other value unchanged.
func body(value json.RawMessage) []byte {
	if s, ok := Text(value); ok {
		return []byte(s)
	}
	return value
}
