package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// Limits are a message's own limits as commands show and read them.
type Limits struct {
	Attempts          int      `json:"attempts,omitempty"`
	HandlerTimeout    Duration `json:"handler_timeout,omitempty"`
	ExpiresAfter      Duration `json:"expires_after,omitempty"`
	Expires           Time     `json:"expires,omitzero"`
	DeadLetterExpired bool     `json:"dead_letter_expired,omitempty"`
}

// Duration is a duration as text.
type Duration time.Duration

// MarshalText is called by encoding/json.
func (d Duration) MarshalText() ([]byte, error) { return []byte(human.Brief(time.Duration(d))), nil }

// UnmarshalText is called by encoding/json.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := human.Duration(string(text))
	*d = Duration(parsed)
	return err
}

// Time is a time as text.
type Time struct{ time.Time }

// UnmarshalJSON is called by encoding/json.
func (t *Time) UnmarshalJSON(text []byte) (err error) {
	t.Time, err = Parsed("expires", text, readTime, allowedTime)
	return err
}

// LimitsOf returns nil where there are none.
func LimitsOf(l *delayq.Limits) *Limits {
	if l == nil || *l == (delayq.Limits{}) {
		return nil
	}
	return &Limits{l.Attempts, Duration(l.HandlerTimeout), Duration(l.ExpiresAfter), Time{l.Expires.UTC()}, l.DeadLetterExpired}
}

func (m *Message) readLimits(value json.RawMessage) error {
	var l Limits
	in := json.NewDecoder(bytes.NewReader(value))
	in.DisallowUnknownFields()
	if err := in.Decode(&l); err != nil {
		return fmt.Errorf(`limits %s: %w; allowed is an object, as {"attempts": 3, "handler_timeout": "1m", "expires_after": "2h"}`, Shown(string(value)), err)
	}
	m.Limits = &delayq.Limits{
		Attempts: l.Attempts, HandlerTimeout: time.Duration(l.HandlerTimeout), ExpiresAfter: time.Duration(l.ExpiresAfter),
		Expires: l.Expires.Time, DeadLetterExpired: l.DeadLetterExpired,
	}
	return nil
}
