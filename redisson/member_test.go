package redisson_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

func TestParseMember(t *testing.T) {
	t.Parallel()
	const hello = "0500000000000000 68656c6c6f"
	for _, tt := range []struct {
		name, raw string
		format    redisson.MemberFormat
		id        string
		payload   string
	}{
		{"V1", "81e97df41022b1c3" + hello, redisson.V1, "81e97df41022b1c3", "hello"},
		{"V2", "08 0102030405060708" + hello, redisson.V2, "0102030405060708", "hello"},
		{"Both", "07e97df41022b1c3" + hello, redisson.Both, "07e97df41022b1c3", "hello"},
		{"V1, empty", "81e97df41022b1c3 0000000000000000", redisson.V1, "81e97df41022b1c3", ""},
		{"V2, empty", "08 0102030405060708 0000000000000000", redisson.V2, "0102030405060708", ""},
		{"Both, empty", "07e97df41022b1c3 0000000000000000", redisson.Both, "07e97df41022b1c3", ""},
		{"V1, first byte 08", "08e97df41022b1c3" + hello, redisson.V1, "08e97df41022b1c3", "hello"},
		{"V1, first byte 08, payload 01", "08e97df41022b1c3 0100000000000000 01", redisson.V1, "08e97df41022b1c3", "\x01"},
		{"V1, first byte 08, empty", "08e97df41022b1c3 0000000000000000", redisson.V1, "08e97df41022b1c3", ""},
		{"V1, first byte 00", "00e97df41022b1c3" + hello, redisson.V1, "00e97df41022b1c3", "hello"},
		{"V2, id of 1", "01 ff" + hello, redisson.V2, "ff", "hello"},
		{"V2, id of 16", "10" + strings.Repeat("ab", 16) + hello, redisson.V2, strings.Repeat("ab", 16), "hello"},
		{"V2, id of 255", "ff" + strings.Repeat("cd", 255) + hello, redisson.V2, strings.Repeat("cd", 255), "hello"},
		{"ambiguous, 08 and 00", "08e97df41022b1c3 0100000000000000 00", redisson.V2, "e97df41022b1c301", ""},
		{"ambiguous, id of 6 and 00", "06aabbccddeeff 0100000000000000 00", redisson.V1, "06aabbccddeeff01", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := fromHex(t, tt.raw)
			m, err := redisson.ParseMember(raw)
			must(t, err)
			if m.Format != tt.format || !bytes.Equal(m.ID, fromHex(t, tt.id)) || string(m.Payload) != tt.payload {
				t.Errorf("got %v, id %x, payload %q", m.Format, m.ID, m.Payload)
			}
			if got := m.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), raw...)) {
				t.Errorf("%x became %x", raw, got)
			}
		})
	}
}

// To a reader of V2 a member of Both is one with an id of seven bytes.
func TestFormatBothIsReadAsV2(t *testing.T) {
	t.Parallel()
	id := []byte{7, 1, 2, 3, 4, 5, 6, 7}
	both := redisson.Member{Format: redisson.Both, ID: id, Payload: []byte("hello")}.Bytes()
	v1 := redisson.Member{Format: redisson.V1, ID: id, Payload: []byte("hello")}.Bytes()
	v2 := redisson.Member{Format: redisson.V2, ID: id[1:], Payload: []byte("hello")}.Bytes()
	if !bytes.Equal(both, v1) || !bytes.Equal(both, v2) {
		t.Errorf("Both %x, V1 %x, V2 %x", both, v1, v2)
	}
}

func TestParseMemberRejects(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"nothing":            "",
		"a byte":             "08",
		"15 bytes":           "81e97df41022b1c3 00000000000000",
		"V1, a byte short":   "81e97df41022b1c3 0500000000000000 68656c6c",
		"V1, a byte more":    "81e97df41022b1c3 0500000000000000 68656c6c6f6f",
		"V2, a byte short":   "08 0102030405060708 0500000000000000 68656c6c",
		"V2, a byte more":    "08 0102030405060708 0500000000000000 68656c6c6f6f",
		"V2, no length":      "08 0102030405060708",
		"a huge length":      "81e97df41022b1c3 ffffffffffffffff 68656c6c6f",
		"a big-endian count": "81e97df41022b1c3 0000000000000005 68656c6c6f",
		"an id of 0 bytes":   "00 0500000000000000 68656c6c6f",
		"only an id's count": "ff",
		"text":               "some other program's entry of this zset, longer than what is shown of it",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := []byte(raw)
			if name != "text" {
				b = fromHex(t, raw)
			}
			m, err := redisson.ParseMember(b)
			if err == nil {
				t.Fatalf("got %v, id %x, payload %q", m.Format, m.ID, m.Payload)
			}
			holds(t, err, "member", b)
		})
	}
}

func TestMembersShareNoMemory(t *testing.T) {
	t.Parallel()
	raw := fromHex(t, "08 0102030405060708 0500000000000000 68656c6c6f")
	m, err := redisson.ParseMember(raw)
	must(t, err)
	clear(raw)
	if m.ID[0] != 1 || string(m.Payload) != "hello" {
		t.Errorf("after the bytes were cleared: id %x, payload %q", m.ID, m.Payload)
	}
	if _ = append(m.ID, "overwritten"...); string(m.Payload) != "hello" {
		t.Errorf("after an append to the id: payload %q", m.Payload)
	}
}

func TestAppendPanicsOnIDsWithoutRoom(t *testing.T) {
	t.Parallel()
	eight := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, m := range []redisson.Member{
		{}, {ID: make([]byte, 256)}, {Format: redisson.V1}, {Format: redisson.V1, ID: eight[:7]},
		{Format: redisson.Both, ID: eight}, {Format: redisson.Both}, {Format: -1, ID: eight}, {Format: 3, ID: eight},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v took the id %x", m.Format, m.ID)
				}
			}()
			m.Bytes()
		}()
	}
}

func TestFormatString(t *testing.T) {
	t.Parallel()
	for f, want := range map[redisson.MemberFormat]string{0: "V2", redisson.V1: "V1", redisson.Both: "Both", 9: "MemberFormat(9)"} {
		if f.String() != want {
			t.Errorf("%d is %q, want %q", int(f), f, want)
		}
	}
}

func TestUnreadableErrorIsShort(t *testing.T) {
	t.Parallel()
	_, err := redisson.ParseMember(bytes.Repeat([]byte{0xab}, 33))
	want := "unreadable member: it has no layout of Redisson's: [" + strings.Repeat("ab", 32) + "…] (33 bytes)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err = redisson.ParseMember([]byte{1}); err == nil || err.Error() != "unreadable member: it has no layout of Redisson's: [01] (1 bytes)" {
		t.Errorf("got %v", err)
	}
	if !errors.Is(err, redisson.ErrUnreadable) || errors.Is(err, backend.ErrInvalid) {
		t.Errorf("%v matches the wrong sentinel", err)
	}
}

// FuzzMember parses and writes members: a parsed member keeps every byte.
func FuzzMember(f *testing.F) {
	for _, seed := range []string{
		"", "81e97df41022b1c3 0500000000000000 68656c6c6f", "08 0102030405060708 0500000000000000 68656c6c6f",
		"07e97df41022b1c3 0000000000000000", "08e97df41022b1c3 0100000000000000 00", "01 ff 0100000000000000 00",
		"06aabbccddeeff 0100000000000000 00",
	} {
		f.Add(fromHex(f, seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := redisson.ParseMember(raw)
		if err != nil {
			holds(t, err, "member", raw)
			return
		}
		if got := m.Bytes(); !bytes.Equal(got, raw) {
			t.Fatalf("%x was parsed as %v %x %x, which is %x", raw, m.Format, m.ID, m.Payload, got)
		}
	})
}

// FuzzWrittenMember parses written members, in the format that they were written in. One case is
// ambiguous.
func FuzzWrittenMember(f *testing.F) {
	f.Add(0, []byte("12345678"), []byte("hello"))
	f.Add(1, []byte("\x0812345678"), []byte{0})
	f.Add(2, []byte("\x07abcdefg"), []byte{})
	f.Fuzz(func(t *testing.T, format int, id, payload []byte) {
		m := redisson.Member{Format: redisson.MemberFormat(uint(format) % 3), ID: append(id, make([]byte, 8)...)[:8], Payload: payload}
		switch {
		case m.Format == redisson.Both:
			m.ID[0] = 7
		case m.Format == redisson.V1 && m.ID[0] == 7:
			m.Format = redisson.Both
		case m.Format == redisson.V1 && m.ID[0] == 8 && bytes.Equal(payload, []byte{0}):
			return
		}
		got, err := redisson.ParseMember(m.Bytes())
		must(t, err)
		if got.Format != m.Format || !bytes.Equal(got.ID, m.ID) || !bytes.Equal(got.Payload, payload) {
			t.Fatalf("%v %x %x came back as %v %x %x", m.Format, m.ID, payload, got.Format, got.ID, got.Payload)
		}
	})
}
