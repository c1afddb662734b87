package redisson_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/redisson"
)

// huge is a length that no reader should allocate because a record says so.
const huge = 600 << 20

// announced is a member in the newer layout whose length is another than that of its payload.
func announced(n uint64, payload string) string {
	b := binary.LittleEndian.AppendUint64([]byte("\x0812345678"), n)
	return string(b) + payload
}

// An announced length is believed only as far as there are bytes. Not parallel: the test measures
// the process.
func TestAnnouncedLengthsTakeNoMemory(t *testing.T) {
	for name, read := range map[string]func() error{
		"member":                   func() error { _, err := redisson.ParseMember([]byte(announced(huge, "short"))); return err },
		"member, largest":          func() error { _, err := redisson.ParseMember([]byte(announced(1<<64-1, ""))); return err },
		"member id":                func() error { _, err := redisson.MemberID([]byte(announced(huge, "short")), time.Now()); return err },
		"envelope's headers":       decode(redisson.Envelope, "\xdddq\x01\x01a\x80\x80\x80\x9e\x02body"),
		"envelope's key":           decode(redisson.Envelope, "\xdddq\x01\x01a\x08\x80\x80\x80\x9e\x02abc"),
		"envelope's id":            decode(redisson.Envelope, "\xdddq\x01\xffshort"),
		"string of Marshalling":    decode(redisson.MarshallingString, "\x04\x40\x25\x80\x00\x00abc"),
		"longest of Marshalling":   decode(redisson.MarshallingString, "\x04\x40\x7f\xff\xff\xffabc"),
		"string of Kryo":           decode(redisson.Kryo5String, "\x03\xc0\x80\x80\xac\x02abc"),
		"longest of Kryo":          decode(redisson.Kryo5String, "\x03\xff\xff\xff\xff\x0fabcdefgh"),
		"class of Kryo, unended":   decode(redisson.Kryo5String, "\x01\x00"+strings.Repeat("a", 1000)),
		"nested arrays of Jackson": decode(redisson.JacksonObject, strings.Repeat("[", 1<<16)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, redisson.ErrUnreadable) {
			t.Errorf("%s: %v, want it unreadable", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s took %d bytes", name, n)
		}
	}
}

func decode(c redisson.Codec, payload string) func() error {
	return func() error { _, err := c.Decode([]byte(payload)); return err }
}

// A due time beyond any calendar is Java's to set; a listing that has such a message goes on, and
// so does the queue.
func TestAbsurdDueTimes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, score := range []string{"-1e300", "-9.3e18", "-1", "0"} {
		must(t, p.raw.Do(p.ctx, "zadd", p.times(), score, javaMember(redisson.V2, score)).Err())
	}
	for _, score := range []string{"9e15", "9.3e18", "1e300"} {
		must(t, p.raw.Do(p.ctx, "zadd", p.times(), score, javaMember(redisson.V2, score)).Err())
	}
	q := p.open()
	p.takes(q, "-1e300", "-9.3e18", "-1", "0")
	await(t, "the counts", func() bool { return p.stats(q).Scheduled == 3 })
	page, _, err := q.Peek(p.ctx, "", 10)
	must(t, err)
	if len(page) != 3 {
		t.Errorf("%d messages wait: %+v", len(page), page)
	}
}

// Java's serialized objects are rejected with the class that they name, as text, and the rest is
// bytes: there is nothing here that could make an object of them.
func TestJavaObjectsAreOnlyNamed(t *testing.T) {
	t.Parallel()
	const gadget = "org.apache.commons.collections.functors.InvokerTransformer"
	long := "a." + strings.Repeat("B", 1<<16)
	kryo := func(class string) string {
		return "\x01\x00" + class[:len(class)-1] + string([]byte{class[len(class)-1] | 0x80}) + "\x01\x02\x03"
	}
	for _, c := range []struct {
		codec         redisson.Codec
		payload, says string
	}{
		{redisson.Kryo5String, kryo(gadget), fmt.Sprintf("an object of the class %q", gadget)},
		{redisson.Kryo5String, kryo("\x1b[2J\r\n"), `of the class "\x1b[2J\r\n"`},
		{redisson.Kryo5String, kryo(long), fmt.Sprintf("of the class %q… (%d bytes)", long[:80], len(long))},
		{redisson.JacksonString, `{"@class":"` + gadget + `","x":1}`, fmt.Sprintf("no string of the class %q", gadget)},
		{redisson.Jackson3String, ` ["java.lang.Runtime", {}]`, `of the class "java.lang.Runtime"`},
		{redisson.JacksonString, `{"@class":"` + long + `"}`, fmt.Sprintf("… (%d bytes)", len(long))},
		{redisson.JacksonString, `{"@class":"\u001b[2J"}`, `of the class "\x1b[2J"`},
		{redisson.MarshallingString, "\x04\x09\x15\x3a" + gadget, "an object with the tag 09, only strings are read"},
		{redisson.Envelope, "\xac\xed\x00\x05sr\x00\x11java.util.HashMap", "it does not begin as one"},
	} {
		_, err := c.codec.Decode([]byte(c.payload))
		if !errors.Is(err, redisson.ErrUnreadable) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 {
			t.Errorf("%s: %v; want it to say %s", c.codec.Name(), err, c.says)
		}
	}
	// The codecs for objects hand on JSON that names a class, byte for byte: its reader decides
	// about the class.
	for _, c := range []redisson.Codec{redisson.JacksonObject, redisson.Jackson3Object} {
		payload := `{"@class":"` + gadget + `","iMethodName":"exec"}`
		if body, err := c.Decode([]byte(payload)); err != nil || string(body) != payload {
			t.Errorf("%s: %q, %v", c.Name(), body, err)
		}
	}
}

// Redisson has one set of keys for the names "a" and "{a}", and so they are not told apart here
// either.
func TestBracesAroundAName(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.openOn(p.backend(redisson.WithCodec(redisson.Envelope)))
	p.push(q, time.Hour, "x")
	b := p.backend(redisson.WithCodec(redisson.Envelope))
	r, err := b.Inspect(p.ctx, "{"+p.name+"}")
	must(t, err)
	if r.Waiting != 1 || r.Keys.Timeouts != p.times() || r.Keys.Destination == p.name {
		t.Errorf("%+v", r)
	}
}
