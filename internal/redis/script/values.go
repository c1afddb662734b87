package script

import (
	"strconv"
	"time"
)

// Resolution is the resolution of due times and leases: scores are whole milliseconds.
const Resolution = time.Millisecond

// Due is a due time as an argument: milliseconds, rounded up; nothing when there is none.
func Due(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	return strconv.FormatInt(DueMS(due), 10)
}

// DueMS is a due time in milliseconds, rounded up.
func DueMS(due time.Time) int64 {
	ms := due.UnixMilli()
	if due.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// Delay is a delay as an argument: microseconds, rounded up.
func Delay(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// Flag is a boolean as an argument.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// MS reads milliseconds since 1970 from a reply; the zero time for what is not after 1970.
func MS(reply any) time.Time {
	ms := Int(reply)
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// MSOrNone reads milliseconds since 1970 from a reply; the zero time for -1.
func MSOrNone(reply any) time.Time {
	ms := Int(reply)
	if ms < 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// US reads microseconds since 1970 from a reply.
func US(reply any) time.Time { return time.UnixMicro(Int(reply)).UTC() }

// Int reads a number from a reply, where large ones are texts; 0 for what is none.
func Int(reply any) int64 {
	if n, ok := reply.(int64); ok {
		return n
	}
	text, _ := reply.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
