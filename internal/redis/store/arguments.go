package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// The number of arguments of a message: one more where any message of the call has UniqueFor.
const (
	fieldsPlain  = 3
	fieldsUnique = 4
)

func fieldsOf(ms []backend.Message) int {
	if slices.ContainsFunc(ms, func(m backend.Message) bool { return m.UniqueFor > 0 }) {
		return fieldsUnique
	}
	return fieldsPlain
}

// scheduleArgs are the arguments of a push.
func scheduleArgs(ms []backend.Message) []any {
	fields := fieldsOf(ms)
	b := newBunch(ms, fields)
	for i := range ms {
		b.add(record.PackID(b.scratch, ms[i].ID))
		b.add(record.AppendContent(b.scratch, ms[i].Headers, ms[i].Body))
		b.add(appendWhen(b.scratch, &ms[i]))
		if fields == fieldsUnique {
			b.add(strconv.AppendInt(b.scratch, script.Delay(ms[i].UniqueFor), 10))
		}
	}
	return b.args
}

// appendWhen appends when a message is due: a time in milliseconds, or '+' and a delay in
// microseconds.
func appendWhen(dst []byte, m *backend.Message) []byte {
	if m.Due.IsZero() {
		return strconv.AppendInt(append(dst, '+'), script.Delay(m.Delay), 10)
	}
	return strconv.AppendInt(dst, script.DueMS(m.Due), 10)
}

// A bunch is arguments that are cut from one text. The client library gets pointers to them: five
// allocations for all arguments instead of two for each.
type bunch struct {
	text    strings.Builder
	scratch []byte // empty, with room for what comes next
	cuts    []string
	args    []any
}

// newBunch returns a bunch with room for the messages, whose first argument is their number of
// arguments.
func newBunch(ms []backend.Message, fields int) *bunch {
	const number = 20 // digits and sign
	size, n := 0, len(ms)*fields
	for i := range ms {
		size += 1 + len(ms[i].ID) + record.ContentSize(ms[i].Headers, ms[i].Body) + (fields-2)*number
	}
	b := &bunch{cuts: make([]string, 0, n), args: append(make([]any, 0, 1+n), fields)}
	b.text.Grow(size)
	return b
}

// add copies one more argument.
func (b *bunch) add(arg []byte) {
	start := b.text.Len()
	b.text.Write(arg)
	b.cuts = append(b.cuts, b.text.String()[start:])
	b.args = append(b.args, &b.cuts[len(b.cuts)-1])
	b.scratch = arg[:0]
}
