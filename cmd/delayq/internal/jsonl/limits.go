package jsonl

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// Limits are a message's own limits as commands show them.
type Limits struct {
	Attempts          int       `json:"attempts,omitempty"`
	HandlerTimeout    Duration  `json:"handler_timeout,omitempty"`
	ExpiresAfter      Duration  `json:"expires_after,omitempty"`
	Expires           time.Time `json:"expires,omitzero"`
	DeadLetterExpired bool      `json:"dead_letter_expired,omitempty"`
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

// LimitsOf returns nil where there are none.
func LimitsOf(l *delayq.Limits) *Limits {
	if l == nil || *l == (delayq.Limits{}) {
		return nil
	}
	return &Limits{l.Attempts, Duration(l.HandlerTimeout), Duration(l.ExpiresAfter), l.Expires.UTC(), l.DeadLetterExpired}
}

var limitReaders = map[string]func(*delayq.Limits, json.RawMessage) error{
	"attempts": func(l *delayq.Limits, value json.RawMessage) error {
		if json.Unmarshal(value, &l.Attempts) != nil {
			return fmt.Errorf("attempts %s: allowed is a whole number", Shown(string(value)))
		}
		return nil
	},
	"handler_timeout": func(l *delayq.Limits, value json.RawMessage) (err error) {
		l.HandlerTimeout, err = Parsed("handler_timeout", value, human.Duration, allowedDuration)
		return err
	},
	"expires_after": func(l *delayq.Limits, value json.RawMessage) (err error) {
		l.ExpiresAfter, err = Parsed("expires_after", value, human.Duration, allowedDuration)
		return err
	},
	"expires": func(l *delayq.Limits, value json.RawMessage) (err error) {
		l.Expires, err = Parsed("expires", value, readTime, allowedTime)
		return err
	},
	"dead_letter_expired": func(l *delayq.Limits, value json.RawMessage) error {
		if json.Unmarshal(value, &l.DeadLetterExpired) != nil {
			return fmt.Errorf("dead_letter_expired %s: allowed is true or false", Shown(string(value)))
		}
		return nil
	},
}

func (m *Message) readLimits(value json.RawMessage) error {
	m.Limits = &delayq.Limits{}
	_, err := Into(m.Limits, value, limitReaders, "attempts, handler_timeout, expires_after, expires and dead_letter_expired")
	return in("limits", err)
}
