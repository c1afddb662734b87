package interop

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var order = Order{ID: "17", Amount: 1 << 40, Tags: []string{"a", "ü"}}

// comesBack are values by the codecs that bring them back as they were.
var comesBack = []struct {
	value any
	by    []Codec
}{
	{"", []Codec{String, Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{"NUL \x00, umlaut ü, 中文, 😀", []Codec{String, Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{strings.Repeat("long ", 20_000), []Codec{String, Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{UTF16{'a', 0xd83d, 'b', 0xde00}, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{[]byte{0, 1, 0xfe, 0xff}, []Codec{Bytes, Marshalling, Kryo5, Default}},
	{int32(-7), []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{int64(7), []Codec{Jackson, Marshalling, Kryo5, Default}},
	{0.5, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{true, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{order, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{map[string]any{"k": "v", "n": int32(1), "deep": map[string]any{}}, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
	{[]any{"a", nil, int32(2), []any{}}, []Codec{Jackson, Jackson3, Marshalling, Kryo5, Default}},
}

func TestValuesComeBack(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for _, codec := range Codecs(f.jvm.Version()) {
			q := f.queue(WithCodec(codec))
			for _, c := range comesBack {
				if slices.Contains(c.by, codec) {
					f.comesBack(ctx, q, codec, c.value)
				}
			}
		}
	})
}

func (f fixture) comesBack(ctx context.Context, q *Queue, codec Codec, value any) {
	f.Helper()
	must(f.T, q.Offer(ctx, value, time.Hour))
	back, err := q.Poll(ctx)
	if !reflect.DeepEqual(back, value) || err != nil {
		f.Errorf("%s makes %.100s of %.100s, and %v", codec, fmt.Sprintf("%#v", back), fmt.Sprintf("%#v", value), err)
	}
}

// TestLoneSurrogate shows that characters that the StringCodec loses are not lost on the way to
// Java.
func TestLoneSurrogate(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		must(f.T, q.Offer(ctx, UTF16{'a', 0xd83d}, time.Hour))
		f.is(q.Poll(ctx))("a?")
	})
}

func TestMissingCodecs(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for _, codec := range []Codec{Jackson3, Marshalling, "nonsense"} {
			err := f.queue(WithCodec(codec)).Offer(ctx, "hello", time.Hour)
			if has := slices.Contains(Codecs(f.jvm.Version()), codec); has != (err == nil) {
				f.Errorf("codec %s, which Redisson %s has: %v: got %v", codec, f.jvm.Version(), has, err)
			}
		}
	})
}
