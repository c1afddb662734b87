package backend

import (
	"fmt"
	"maps"
	"strconv"
	"time"
)

// FirstPushHeader is the header in which a store keeps the time of the first push of a message with
// MaxWait. Package delayq takes it out wherever it shows the message.
const FirstPushHeader = "delayq-first-push"

// FirstPushSize is the length of the header's value, which [FirstPushValue] makes.
const FirstPushSize = 19

// FirstPushValue is the time as the header has it: nanoseconds since 1970 in 19 digits.
func FirstPushValue(at time.Time) string {
	return fmt.Sprintf("%0*d", FirstPushSize, max(at.UnixNano(), 0))
}

// FirstPush reads the header. It returns the zero time where there is none.
func FirstPush(headers map[string]string) time.Time {
	ns, err := strconv.ParseInt(headers[FirstPushHeader], 10, 64)
	if err != nil || ns < 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// WithFirstPush returns a copy of the headers that has the time of the first push.
func WithFirstPush(headers map[string]string, at time.Time) map[string]string {
	all := make(map[string]string, len(headers)+1)
	maps.Copy(all, headers)
	all[FirstPushHeader] = FirstPushValue(at)
	return all
}

// Bounded applies MaxWait in a store whose clock shows now: waiting has the headers of the message
// that it replaces, nil for none. It returns a message without MaxWait, whose due time is at most
// the first push plus MaxWait, and whose headers have the time of the first push.
func (m *Message) Bounded(waiting map[string]string, now time.Time) Message {
	bounded := *m
	if m.MaxWait == 0 {
		return bounded
	}
	first := FirstPush(waiting)
	if first.IsZero() {
		first = now
	}
	if last := first.Add(m.MaxWait); m.DueAt(now).After(last) {
		bounded.Due, bounded.Delay = last, 0
	}
	bounded.Headers, bounded.MaxWait = WithFirstPush(m.Headers, first), 0
	return bounded
}
