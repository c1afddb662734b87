package redisson_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

var allCodecs = []redisson.Codec{
	redisson.Bytes, redisson.String, redisson.JacksonString, redisson.Jackson3String,
	redisson.JacksonObject, redisson.Jackson3Object, redisson.MarshallingString, redisson.Kryo5String,
}

func TestCodecByName(t *testing.T) {
	t.Parallel()
	const list = "bytes, string, jackson, jackson3, jackson-object, jackson3-object, marshalling, kryo5, envelope"
	all := append(slices.Clone(allCodecs), redisson.Envelope)
	for i, name := range strings.Split(list, ", ") {
		c, err := redisson.CodecByName(name)
		if err != nil || c != all[i] || c.Name() != name {
			t.Errorf("%q is %v, %v", name, c, err)
		}
	}
	for _, name := range []string{"", "kryo", "Kryo5", " bytes"} {
		_, err := redisson.CodecByName(name)
		if want := fmt.Sprintf("invalid codec %q: allowed is %s", name, list); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// check holds a codec to one form: it writes the payload for the body, and reads it.
func check(t *testing.T, c redisson.Codec, body, payload string) {
	t.Helper()
	got, err := c.Encode([]byte(body))
	if err != nil || string(got) != payload {
		t.Errorf("%s wrote %.80q as %.80x, %v, want %.80x", c.Name(), body, got, err, payload)
	}
	reads(t, c, payload, body)
}

func reads(t *testing.T, c redisson.Codec, payload, body string) {
	t.Helper()
	if got, err := c.Decode([]byte(payload)); err != nil || string(got) != body {
		t.Errorf("%s read %.80q as %.80q, %v, want %.80q", c.Name(), payload, got, err, body)
	}
}

// wontWrite wants a rejection that names the body and holds a hint.
func wontWrite(t *testing.T, c redisson.Codec, body, hint string) {
	t.Helper()
	payload, err := c.Encode([]byte(body))
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), hint) {
		t.Errorf("%s wrote %q as %q, %v", c.Name(), body, payload, err)
	}
}

// The strings that have one form on this side: a pair is four bytes.
var notJava = map[string]string{
	"a lone byte":            "\x80",
	"an end cut off":         "a\xc3",
	"an overlong NUL":        "\xc0\x80",
	"an overlong letter":     "\xe0\x81\x81",
	"a pair as two times 3":  "\xed\xa0\xbd\xed\xb8\x80",
	"beyond Unicode":         "\xf4\x90\x80\x80",
	"five bytes":             "\xf8\x88\x80\x80\x80",
	"half a surrogate":       "\xed\xa0",
	"a surrogate, then 0x41": "\xed\xa0A",
}

// Surrogates without their other half, alone and side by side.
var loneSurrogates = []string{
	"\xed\xa0\xbd", "\xed\xb8\x80", "\xed\xb8\x80\xed\xa0\xbd", "\xed\xa0\xbd\xed\xa0\xbd", "\xed\xb8\x80\xed\xb8\x80",
	"\xed\xa0\xbdx\xed\xb8\x80", "\xed\xa0\xbd😀", "😀\xed\xb8\x80",
}

func TestStringCodecsAgreeOnStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []redisson.Codec{redisson.JacksonString, redisson.Jackson3String, redisson.MarshallingString, redisson.Kryo5String} {
		for _, body := range append([]string{"", "\x00", "\x00\x00", "é", "😀", "\uffff", "\ufffd", "\U0010ffff", "\ud7ff", "\ue000"}, loneSurrogates...) {
			payload, err := c.Encode([]byte(body))
			if err != nil {
				t.Errorf("%s: %q: %v", c.Name(), body, err)
				continue
			}
			reads(t, c, string(payload), body)
		}
		for name, body := range notJava {
			t.Run(c.Name()+"/"+name, func(t *testing.T) { wontWrite(t, c, body, "the codec bytes takes all") })
		}
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "hello", "\x00", "中文", "😀", "\ufeffx"} {
		check(t, redisson.String, s, s)
	}
	for _, s := range append(loneSurrogates, "\xff", "\xc0\x80") {
		wontWrite(t, redisson.String, s, "UTF-8")
		refused(t, redisson.String, []byte(s))
	}
}

// A change of a codec's result must not change its argument.
func TestCodecsShareNoMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []redisson.Codec{redisson.JacksonString, redisson.Jackson3String, redisson.MarshallingString, redisson.Kryo5String} {
		for _, body := range []string{"hello", strings.Repeat("x", 100)} {
			given := []byte(body)
			payload, err := c.Encode(given)
			must(t, err)
			got, err := c.Decode(payload)
			must(t, err)
			clear(payload)
			if string(given) != body || string(got) != body {
				t.Errorf("%s: the body was %q, is %q and came back as %q", c.Name(), body, given, got)
			}
		}
	}
}

// The bytes of a rejection outlive the buffer that they were read into.
func TestRefusalsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for _, c := range allCodecs[1:] {
		raw := []byte("\xff\xfe")
		_, err := c.Decode(raw)
		clear(raw)
		holds(t, err, c.Name(), []byte("\xff\xfe"))
	}
}

// FuzzCodecs reads foreign bytes. A codec writes a decoded body with the same bytes, unless they
// are a form that its comment names.
func FuzzCodecs(f *testing.F) {
	for _, seed := range []string{
		"", "03 68656c6cef", "03 81", "03 82 41", "03 85 68656c6c", "03 83 eda0bd edb880", "03 c001", "02 02", "01005bc204010203",
		"04 3d", "04 3e 05 68656c6c6f", "04 3e 02 eda0bd edb880", "04 3e 01 c080", "04 3f 0005 68656c6c6f", "04 40 7fffffff", "04 4b 00000001",
	} {
		f.Add(fromHex(f, seed))
	}
	for _, seed := range []string{
		`"hello"`, ` "a\/b\ud83d\uDE00\u0000\n" `, `"\ud83d"`, `{"@class":"a.B","x":[1,{"y":"😀\ud83d"}]}`, ` ["java.lang.Long" , 1]`,
		`["[La.B;",[]]`, `{ "\u0040class" : "B" }`, `[1,2]`, `1`, `null`, `["a","b"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		payload = slices.Clip(payload)
		for _, c := range allCodecs {
			body, err := c.Decode(payload)
			if err != nil {
				holds(t, err, c.Name(), payload)
				continue
			}
			if cap(body) > 2*len(payload)+64 {
				t.Errorf("%s took %d bytes to read %d", c.Name(), cap(body), len(payload))
			}
			again, err := c.Encode(body)
			if err != nil {
				t.Fatalf("%s read %q as %q, and will not write it: %v", c.Name(), payload, body, err)
			}
			if !bytes.Equal(again, payload) {
				checkOtherForm(t, c, payload, body, again)
			}
		}
	})
}

// checkOtherForm allows the forms that comments name: longer forms of short ASCII, and JSON.
func checkOtherForm(t *testing.T, c redisson.Codec, payload, body, again []byte) {
	t.Helper()
	switch name := c.Name(); {
	case strings.HasPrefix(name, "jackson"):
	case name == "kryo5" && len(body) >= 2 && len(body) <= 32 && payload[1] == 0x80|byte(len(body)+1):
	default:
		t.Fatalf("%s read %q as %q and wrote %q", name, payload, body, again)
	}
	third, err := c.Decode(again)
	if err != nil {
		t.Fatalf("%s wrote %q as %q, and does not read it: %v", c.Name(), body, again, err)
	}
	if final, err := c.Encode(third); err != nil || !bytes.Equal(final, again) {
		t.Fatalf("%s read %q, wrote %q, then %q, %v", c.Name(), payload, again, final, err)
	}
}

// FuzzEncode decodes encoded bodies. A codec for objects may give the same JSON in another form.
func FuzzEncode(f *testing.F) {
	for _, seed := range append(loneSurrogates, "", "hello", "\x00", "A", strings.Repeat("x", 33), "中文 😀", "\"\\\b\x1f\x7f\u2028",
		` { "@class" : "a.B" , "x" : 1.50 } `, `["a.B",[[],{}]]`) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, c := range allCodecs {
			payload, err := c.Encode(body)
			if err != nil {
				if !errors.Is(err, backend.ErrInvalid) {
					t.Fatalf("%s refused %q with %v", c.Name(), body, err)
				}
				continue
			}
			got, err := c.Decode(payload)
			if err != nil {
				t.Fatalf("%s wrote %q as %q, and does not read it: %v", c.Name(), body, payload, err)
			}
			if !bytes.Equal(got, body) {
				checkSameJSON(t, c, body, got)
			}
		}
	})
}

func checkSameJSON(t *testing.T, c redisson.Codec, body, got []byte) {
	t.Helper()
	if !strings.HasSuffix(c.Name(), "-object") {
		t.Fatalf("%s: %q came back as %q", c.Name(), body, got)
	}
	if again, err := c.Encode(got); err != nil || !bytes.Equal(again, got) {
		t.Fatalf("%s: %q came back as %q, and that as %q, %v", c.Name(), body, got, again, err)
	}
	if !bytes.Equal(tokens(t, body), tokens(t, got)) {
		t.Fatalf("%s: %q came back as %q, which is other JSON", c.Name(), body, got)
	}
}
