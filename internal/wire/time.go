package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// Duration is written as seconds, exact to the nanosecond. It reads seconds, or text such as "30m".
type Duration time.Duration

const allowedDuration = `seconds, as 1.5, or a text, as "1.5s", "30m" or "72h"`

// MarshalJSON is called by encoding/json.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d < 0 {
		return append([]byte{'-'}, seconds(-int64(d))...), nil
	}
	return seconds(int64(d)), nil
}

func seconds(ns int64) []byte {
	text := strconv.FormatInt(ns/int64(time.Second), 10)
	if rest := ns % int64(time.Second); rest != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%09d", rest), "0")
	}
	return []byte(text)
}

// UnmarshalJSON is called by encoding/json.
func (d *Duration) UnmarshalJSON(value []byte) error {
	text := string(value)
	switch {
	case text == "null":
		return nil
	case value[0] == '"':
		if err := json.Unmarshal(value, &text); err != nil {
			return fmt.Errorf("reading a duration: %w", err)
		}
	case strings.ContainsAny(text, "eE"):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return invalidDuration(value)
		}
		text = strconv.FormatFloat(f, 'f', 9, 64) + "s"
	default:
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return invalidDuration(value)
	}
	*d = Duration(parsed)
	return nil
}

// invalidDuration shows the JSON as it was sent, but for one that would make the error large.
func invalidDuration(value []byte) error {
	const shown = 64
	if len(value) > shown {
		return backend.Invalid("duration", string(value), allowedDuration) // which is shortened
	}
	return backend.Invalid("duration", Described(value), allowedDuration)
}

// The first and the last time that JSON has a form for. Other programs may have set any due time.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Time returns a time as JSON has it, nil for the zero time.
func Time(t time.Time) *time.Time {
	switch {
	case t.IsZero():
		return nil
	case t.Before(firstTime):
		t = firstTime
	case t.After(lastTime):
		t = lastTime
	}
	t = t.UTC()
	return &t
}

// At is the inverse of Time. The zero time that somebody sends is not one that was left out: it is too
// early for everything.
func At(t *time.Time) time.Time {
	switch {
	case t == nil:
		return time.Time{}
	case t.IsZero():
		return t.Add(time.Nanosecond)
	}
	return *t
}
