package dashboard

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq"
)

// filter selects messages of a list: those that match all fields that are set.
type filter struct {
	State  string // "ready" or "scheduled"; of messages that wait
	Type   string
	Reason string        // a part of it; of dead letters
	Older  time.Duration // since the death, or since it was due
	Within time.Duration // until it is due

	OlderText, WithinText string // as typed
}

// Empty tells whether the filter selects all messages.
func (f filter) Empty() bool {
	return f.State == "" && f.Type == "" && f.Reason == "" && f.OlderText == "" && f.WithinText == ""
}

// readFilter reads the fields of a form.
func readFilter(form url.Values) (f filter, err error) {
	f = filter{
		State: form.Get("state"), Type: form.Get("type"), Reason: form.Get("reason"),
		OlderText: strings.TrimSpace(form.Get("older")), WithinText: strings.TrimSpace(form.Get("within")),
	}
	if f.State != "" && f.State != "ready" && f.State != "scheduled" {
		return f, errors.New("state: ready, scheduled or nothing")
	}
	if f.OlderText != "" {
		if f.Older, err = parseSpan(f.OlderText); err != nil {
			return f, errors.New("older than: " + err.Error())
		}
	}
	if f.WithinText != "" {
		if f.Within, err = parseSpan(f.WithinText); err != nil {
			return f, errors.New("due within: " + err.Error())
		}
	}
	return f, nil
}

// Values are the filter as a query.
func (f filter) Values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{"state": f.State, "type": f.Type, "reason": f.Reason, "older": f.OlderText, "within": f.WithinText} {
		if value != "" {
			v.Set(key, value)
		}
	}
	return v
}

// String describes the filter.
func (f filter) String() string {
	var parts []string
	if f.State != "" {
		parts = append(parts, f.State)
	}
	if f.Type != "" {
		parts = append(parts, "type "+strconv.Quote(short(f.Type, 100)))
	}
	if f.Reason != "" {
		parts = append(parts, "reason with "+strconv.Quote(short(f.Reason, 100)))
	}
	if f.OlderText != "" {
		parts = append(parts, "older than "+span(f.Older))
	}
	if f.WithinText != "" {
		parts = append(parts, "due within "+span(f.Within))
	}
	if parts == nil {
		return "all"
	}
	return strings.Join(parts, ", ")
}

// matches tells whether a message is selected. now is by this process's clock.
func (f *filter) matches(m *delayq.MessageInfo, now time.Time) bool {
	since := m.Due
	if m.State == delayq.StateDead {
		since = m.Died
	}
	switch {
	case f.State == "ready" && m.State != delayq.StateReady, f.State == "scheduled" && m.State != delayq.StateScheduled:
	case f.Type != "" && m.Headers[delayq.TypeHeader] != f.Type:
	case f.Reason != "" && !strings.Contains(m.Reason, f.Reason):
	case f.OlderText != "" && since.After(now.Add(-f.Older)):
	case f.WithinText != "" && m.Due.After(now.Add(f.Within)):
	default:
		return true
	}
	return false
}

// parseSpan reads a duration with days and weeks, as "1d12h".
func parseSpan(s string) (time.Duration, error) {
	var sum time.Duration
	rest := s
	for _, u := range []struct {
		unit string
		size time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		before, after, found := strings.Cut(rest, u.unit)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil || n > uint64(longestSpan/u.size) {
			return 0, errSpan
		}
		sum, rest = sum+time.Duration(n)*u.size, after
	}
	if rest != "" || sum == 0 {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 || d > longestSpan {
			return 0, errSpan
		}
		sum += d // of three spans at most, which a duration holds
	}
	if sum > longestSpan {
		return 0, errSpan
	}
	return sum, nil
}

const longestSpan = 36_500 * 24 * time.Hour // a hundred years

var errSpan = errors.New("a duration up to 36500d, as 90s, 30m, 12h, 3d or 1w2d")
