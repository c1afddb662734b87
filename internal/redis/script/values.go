package script

import (
	"strconv"
	"time"
)

// Resolution is the resolution of due times and leases: scores are whole milliseconds.
const Resolution = time.Millisecond

// Due returns a due time as an argument: milliseconds, rounded up, or nothing for the zero time.
func Due(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return strconv.FormatInt(DueMS(due), 10)
}

// DueMS returns a due time in milliseconds, rounded up.
func DueMS(due time.Time) int64 {
	ms := due.UnixMilli()
	if due.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// Delay returns a delay as an argument: microseconds, rounded up.
func Delay(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// Flag returns a boolean as an argument.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// MS reads milliseconds since 1970 from a reply. It returns the zero time for 0 and less.
func MS(reply any) time.Time {
	ms := Int(reply)
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// MSOrNone reads milliseconds since 1970 from a reply. It returns the zero time for less than 0.
func MSOrNone(reply any) time.Time {
	ms := Int(reply)
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// US reads microseconds since 1970 from a reply.
func US(reply any) time.Time { return time.UnixMicro(Int(reply)).UTC() }

// Int reads a number from a reply, where large ones are texts. It returns 0 for anything else.
func Int(reply any) int64 {
	if n, ok := reply.(int64); ok {
		return n
	}
	text, _ := reply.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
