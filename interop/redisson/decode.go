package interop

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// decode reads a value in the notation that Notation.java describes.
func decode(text string) (any, error) {
	d := &decoder{rest: text}
	value, err := d.value()
	if err == nil && d.rest != "" {
		err = fmt.Errorf("%q follows the value", d.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the value %.100q from Java: %w", text, err)
	}
	return value, nil
}

type decoder struct{ rest string }

var errCutOff = errors.New("it is cut off")

func (d *decoder) value() (any, error) {
	if d.rest == "" {
		return nil, errCutOff
	}
	kind := d.rest[0]
	d.rest = d.rest[1:]
	if kind == 'a' && strings.HasPrefix(d.rest, "[") {
		return d.list()
	}
	return simple(kind, d.word())
}

func (d *decoder) word() string {
	end := strings.IndexAny(d.rest, ",]")
	if end < 0 {
		end = len(d.rest)
	}
	word := d.rest[:end]
	d.rest = d.rest[end:]
	return word
}

func (d *decoder) list() (any, error) {
	list := []any{}
	for d.rest = d.rest[1:]; !strings.HasPrefix(d.rest, "]"); {
		value, err := d.value()
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		d.rest = strings.TrimPrefix(d.rest, ",")
	}
	d.rest = d.rest[1:]
	return list, nil
}

func simple(kind byte, word string) (any, error) {
	switch kind {
	case 'n':
		return nil, nil
	case 't', 'f':
		return kind == 't', nil
	case 's':
		return units(word)
	case 'b':
		return base64.StdEncoding.DecodeString(word)
	case 'i':
		n, err := strconv.ParseInt(word, 10, 32)
		return int32(n), err
	case 'l':
		return strconv.ParseInt(word, 10, 64)
	default:
		return nil, fmt.Errorf("no value begins with %q", kind)
	}
}

func units(word string) (any, error) {
	raw, err := hex.DecodeString(word)
	if err != nil || len(raw)%2 != 0 {
		return nil, fmt.Errorf("%q is no UTF-16 in hex", word)
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	runes := utf16.Decode(units)
	if !slices.Equal(utf16.Encode(runes), units) {
		return UTF16(units), nil
	}
	return string(runes), nil
}
