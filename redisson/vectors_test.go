package redisson_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// vector is a line of testdata, as its README describes.
type vector struct {
	Kind, Codec, Case, Type              string
	Value                                json.RawMessage
	ValueHex, ValueRepeat, ValueUtf16Hex string
	Units                                int
	PayloadHex, PayloadSha256            string
	HeaderHex, MemberHex, MemberSha256   string
	Name, MapperPrefix                   string
	Destination, Zset, List, Channel     string
}

var versions = map[string]redisson.MemberFormat{
	"3.16.8": redisson.V1, "3.20.1": redisson.V1, "3.52.0": redisson.V2, "4.7.0": redisson.V2,
}

// stringCodec is the codec here for the strings, or the bytes, of one of Redisson's.
var stringCodec = map[string]redisson.Codec{
	"ByteArrayCodec":    redisson.Bytes,
	"StringCodec":       redisson.String,
	"JsonJacksonCodec":  redisson.JacksonString,
	"JsonJackson3Codec": redisson.Jackson3String,
	"MarshallingCodec":  redisson.MarshallingString,
	"Kryo5Codec":        redisson.Kryo5String,
}

var objectCodec = map[string]redisson.Codec{
	"JsonJacksonCodec":  redisson.JacksonObject,
	"JsonJackson3Codec": redisson.Jackson3Object,
}

// eachVector runs f on the vectors of a kind in all versions, and holds their number.
func eachVector(t *testing.T, kind string, perVersion int, f func(t *testing.T, format redisson.MemberFormat, v vector)) {
	t.Parallel()
	for version, format := range versions {
		found := 0
		for _, v := range readVectors(t, version) {
			if v.Kind == kind {
				found++
				t.Run(strings.Join([]string{version, v.Codec, v.Case}, "/"), func(t *testing.T) { f(t, format, v) })
			}
		}
		if found != perVersion {
			t.Errorf("%s has %d vectors %q, want %d", version, found, kind, perVersion)
		}
	}
}

func readVectors(t *testing.T, version string) (all []vector) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "vectors-"+version+".jsonl"))
	must(t, err)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		must(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return all
}

func TestVectors(t *testing.T) {
	eachVector(t, "value", 200, func(t *testing.T, format redisson.MemberFormat, v vector) {
		payload := v.checkPayload(t)
		v.checkMember(t, format, payload)
	})
}

func TestKeyNamesAreRedissons(t *testing.T) {
	eachVector(t, "keys", 9, func(t *testing.T, _ redisson.MemberFormat, v vector) {
		want := [4]string{v.Destination, v.Zset, v.List, v.Channel}
		if got := redisson.NamesOf(v.MapperPrefix + v.Name); got != want {
			t.Errorf("%q has the names %q, want %q", v.Name, got, want)
		}
	})
}

// checkPayload returns the payload, which for long strings has to come from the codec.
func (v vector) checkPayload(t *testing.T) []byte {
	t.Helper()
	switch {
	case v.Codec == "StringCodec" && v.ValueUtf16Hex != "":
		return v.checkLossy(t)
	case v.Type == "java.lang.String" || v.Codec == "ByteArrayCodec":
		return v.checkString(t, v.body(t))
	case v.Type == "byte[]" && objectCodec[v.Codec] != nil:
		return v.checkString(t, v.base64(t))
	default:
		v.checkObject(t)
		return fromHex(t, v.PayloadHex)
	}
}

// checkString compares the codec for strings with Java's bytes.
func (v vector) checkString(t *testing.T, body []byte) []byte {
	t.Helper()
	c := stringCodec[v.Codec]
	payload, err := c.Encode(body)
	must(t, err)
	same(t, payload, v.PayloadHex, v.PayloadSha256)
	got, err := c.Decode(payload)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%q came back as %q, %v", body, got, err)
	}
	if o := objectCodec[v.Codec]; o != nil {
		refused(t, o, payload)
	}
	return payload
}

// checkLossy is StringCodec with a string that UTF-8 cannot represent. Java wrote a question mark,
// which is a string like any other, and here the body is rejected.
func (v vector) checkLossy(t *testing.T) []byte {
	t.Helper()
	if _, err := redisson.String.Encode(v.body(t)); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("encoded with %v", err)
	}
	payload := fromHex(t, v.PayloadHex)
	body, err := redisson.String.Decode(payload)
	if err != nil || string(body) != "a?b" {
		t.Errorf("decoded as %q, %v", body, err)
	}
	if again, err := redisson.String.Encode(body); err != nil || !bytes.Equal(again, payload) {
		t.Errorf("encoded again as %x, %v, was %x", again, err, payload)
	}
	return payload
}

// checkObject checks that all codecs reject objects that they cannot read, and that those for
// objects read the rest.
func (v vector) checkObject(t *testing.T) {
	t.Helper()
	payload := fromHex(t, v.PayloadHex)
	refused(t, stringCodec[v.Codec], payload)
	o := objectCodec[v.Codec]
	switch {
	case o == nil:
		return
	case payload[0] != '{' && payload[0] != '[':
		refused(t, o, payload)
		return
	}
	body, err := o.Decode(payload)
	if err != nil || !bytes.Equal(body, payload) {
		t.Fatalf("decoded as %q, %v", body, err)
	}
	var spaced bytes.Buffer
	must(t, json.Indent(&spaced, body, "", "\t"))
	for _, form := range [][]byte{body, spaced.Bytes()} {
		if again, err := o.Encode(form); err != nil || !bytes.Equal(again, payload) {
			t.Errorf("%s encoded as %s, %v", form, again, err)
		}
	}
}

func (v vector) checkMember(t *testing.T, format redisson.MemberFormat, payload []byte) {
	t.Helper()
	header := fromHex(t, v.HeaderHex)
	raw := slices.Concat(header, payload)
	same(t, raw, v.MemberHex, v.MemberSha256)
	m, err := redisson.ParseMember(raw)
	must(t, err)
	if format == redisson.V1 && header[0] == 7 {
		format = redisson.Both
	}
	id := header[len(header)-16 : len(header)-8]
	if m.Format != format || !bytes.Equal(m.ID, id) || !bytes.Equal(m.Payload, payload) {
		t.Errorf("parsed as %v, id %x, payload %x", m.Format, m.ID, m.Payload)
	}
	if got := m.Bytes(); !bytes.Equal(got, raw) {
		t.Errorf("member %x encoded as %x", raw, got)
	}
}

// body is the value as users of this package see it.
func (v vector) body(t *testing.T) []byte {
	t.Helper()
	switch {
	case v.ValueRepeat != "":
		return []byte(strings.Repeat(v.ValueRepeat, v.Units/len(v.ValueRepeat)+1)[:v.Units])
	case v.ValueUtf16Hex != "":
		return wtf8(fromHex(t, v.ValueUtf16Hex))
	case v.Type == "byte[]":
		return fromHex(t, v.ValueHex)
	}
	var s string
	must(t, json.Unmarshal(v.Value, &s))
	if n := len(utf16.Encode([]rune(s))); n != v.Units {
		t.Fatalf("%q has %d units, want %d", s, n, v.Units)
	}
	return []byte(s)
}

// wtf8 is enough for a string without pairs.
func wtf8(units []byte) (b []byte) {
	for i := 0; i < len(units); i += 2 {
		u := rune(units[i])<<8 | rune(units[i+1])
		if u < 0x80 {
			b = append(b, byte(u))
			continue
		}
		b = append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
	}
	return b
}

// base64 is Jackson's form of bytes.
func (v vector) base64(t *testing.T) []byte {
	t.Helper()
	text, err := json.Marshal(fromHex(t, v.ValueHex))
	must(t, err)
	s, err := strconv.Unquote(string(text))
	must(t, err)
	return []byte(s)
}

// same compares bytes with their hex, or with their sum if they are long.
func same(t *testing.T, b []byte, inHex, sum string) {
	t.Helper()
	got := sha256.Sum256(b)
	if sum != "" && hex.EncodeToString(got[:]) != sum {
		t.Errorf("%d bytes have another sum: %.64x…", len(b), b)
	}
	if sum == "" && hex.EncodeToString(b) != inHex {
		t.Errorf("got  %x\nwant %s", b, inHex)
	}
}

// refused wants an error with all details.
func refused(t *testing.T, c redisson.Codec, payload []byte) {
	t.Helper()
	body, err := c.Decode(payload)
	if err == nil {
		t.Errorf("%s read %x as %q", c.Name(), payload, body)
		return
	}
	holds(t, err, c.Name(), payload)
}

func holds(t *testing.T, err error, what string, raw []byte) {
	t.Helper()
	var u *redisson.UnreadableError
	if !errors.As(err, &u) || !errors.Is(err, redisson.ErrUnreadable) {
		t.Fatalf("%v is no UnreadableError", err)
	}
	if u.What != what || u.Reason == "" || !bytes.Equal(u.Bytes, raw) || len(err.Error()) > 300 {
		t.Errorf("refusing %x, %s says %q, %q, %x", raw, what, u.What, u.Reason, u.Bytes)
	}
}

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	must(t, err)
	return b
}
