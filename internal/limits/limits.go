// Package limits stores the limits of a message in one of its headers, and reads them back. Every
// store keeps them that way, and none needs to know of them.
package limits

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// Add returns headers with the limits among them, and an error where they are too many then.
func Add(headers map[string]string, l *backend.Limits) (map[string]string, error) {
	return with(headers, text(l))
}

// ExpiredAt reports whether a message with these limits that was due then has expired at a time.
func (s *Stored) ExpiredAt(now, due time.Time) bool {
	return s.ExpiresAfter > 0 && now.After(due.Add(s.ExpiresAfter)) || !s.Expires.IsZero() && now.After(s.Expires)
}

// Header is the header that a message's limits are stored in.
const Header = valid.ReservedPrefix + "limits"

// with returns headers with the text of limits among them.
func with(headers map[string]string, text string) (map[string]string, error) {
	if text == "" {
		return headers, nil
	}
	all := make(map[string]string, len(headers)+1)
	maps.Copy(all, headers)
	all[Header] = text
	return all, valid.Headers(all, Header)
}

// Stored are limits, and the text that they are stored as. The text may have fields of a
// newer release.
type Stored struct {
	backend.Limits
	text  string
	first string // the time of the first push, of a message with MaxWait
}

// Take takes the limits, and the time of the first push, out of the headers of a message that
// the store has returned.
func Take(headers *map[string]string) *Stored {
	stored, limited := (*headers)[Header]
	first, bounded := (*headers)[backend.FirstPushHeader]
	if !limited && !bounded {
		return nil
	}
	delete(*headers, Header)
	delete(*headers, backend.FirstPushHeader)
	if len(*headers) == 0 {
		*headers = nil
	}
	return &Stored{Limits: parse(stored), text: stored, first: first}
}

// In returns headers with what Take took.
func (s *Stored) In(headers map[string]string) (map[string]string, error) {
	all, err := with(headers, s.text)
	if s.first != "" {
		all = maps.Clone(all)
		if all == nil {
			all = make(map[string]string, 1)
		}
		all[backend.FirstPushHeader] = s.first
	}
	return all, err
}

// Own returns the limits, none of a nil Stored.
func (s *Stored) Own() backend.Limits {
	if s == nil {
		return backend.Limits{}
	}
	return s.Limits
}

// Shown returns the limits as a message shows them: nil without any, also for a nil Stored.
func (s *Stored) Shown() *backend.Limits {
	if s == nil || s.text == "" {
		return nil
	}
	return &s.Limits
}

// The names of the fields in the text of limits.
const (
	fieldAttempts = "attempts"
	fieldTimeout  = "timeout"
	fieldAfter    = "expires-after"
	fieldExpires  = "expires"
	fieldDead     = "dead"
)

// text returns "" where there are no limits.
func text(l *backend.Limits) string {
	var fields []string
	if l.Attempts > 0 {
		fields = append(fields, fieldAttempts+"="+strconv.Itoa(l.Attempts))
	}
	if l.HandlerTimeout > 0 {
		fields = append(fields, fieldTimeout+"="+l.HandlerTimeout.String())
	}
	if l.ExpiresAfter > 0 {
		fields = append(fields, fieldAfter+"="+l.ExpiresAfter.String())
	}
	if !l.Expires.IsZero() {
		fields = append(fields, fieldExpires+"="+l.Expires.UTC().Format(time.RFC3339Nano))
	}
	if l.DeadLetterExpired {
		fields = append(fields, fieldDead)
	}
	return strings.Join(fields, " ")
}

// parse skips fields that it does not know or cannot read: a message without a limit is
// better than none.
func parse(stored string) (l backend.Limits) {
	for _, field := range strings.Fields(stored) {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case fieldAttempts:
			if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= valid.MaxAttempts {
				l.Attempts = n
			}
		case fieldTimeout:
			if d, err := time.ParseDuration(value); err == nil && valid.Timeout("", d) == nil {
				l.HandlerTimeout = d
			}
		case fieldAfter:
			if d, err := time.ParseDuration(value); err == nil && valid.Expiry(d) == nil {
				l.ExpiresAfter = d
			}
		case fieldExpires:
			if t, err := time.Parse(time.RFC3339Nano, value); err == nil && valid.Due(t) == nil {
				l.Expires = t
			}
		case fieldDead:
			l.DeadLetterExpired = true
		}
	}
	return l
}
