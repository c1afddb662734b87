package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// awkward are strings at the borders between the codecs' representations.
var awkward = []string{
	"", "A", "hello", "BBBB", "\x00", "a\x00b", "\b\t\n\f\r\x01\x1f\x7f", `"quoted" \ back/slash`, "<a href='x'>&amp;",
	"é", "中文", "😀", "\u2028\u2029\ufeff\ufffd\uffff", "{}", `{"@class":"x.Y"}`, `["java.lang.Long",1]`, "null", " 17 ", "e\u0301",
	strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 33), strings.Repeat("x", 63), strings.Repeat("ü", 64),
	strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("é", 256), strings.Repeat("😀", 128), strings.Repeat("x", 257),
	strings.Repeat("y", 8191), strings.Repeat("y", 65535), strings.Repeat("y", 65536), strings.Repeat("中", 65537),
}

// halves are strings with half a surrogate pair, which the StringCodec has no bytes for: three
// bytes of their own here.
var halves = []struct {
	ours   string
	theirs UTF16
}{
	{"a\xed\xa0\xbd", UTF16{'a', 0xd83d}}, {"\xed\xb8\x80b", UTF16{0xde00, 'b'}}, {"\xed\xb8\x80\xed\xa0\xbd", UTF16{0xde00, 0xd83d}},
}

// text is a string on both sides.
type text struct {
	ours   string
	theirs any
}

func textsFor(codec Codec) (texts []text) {
	for _, s := range awkward {
		texts = append(texts, text{s, s})
	}
	if codec != String {
		for _, h := range halves {
			texts = append(texts, text{h.ours, h.theirs})
		}
	}
	return texts
}

// eachStringCodec runs a test for each codec of each release.
func eachStringCodec(t *testing.T, test func(ctx context.Context, f fixture, codec Codec)) {
	t.Helper()
	eachVersion(t, func(ctx context.Context, f fixture) {
		for _, codec := range Codecs(f.jvm.Version()) {
			if codec == Bytes || codec == Default {
				continue
			}
			f.Run(string(codec), func(t *testing.T) { test(ctx, fixture{t, f.jvm, f.server, f.redis}, codec) })
		}
	})
}

// TestJavaReadsWhatGoWrites shows that every string arrives in Java as it was pushed: in the
// delayed queue, where the bytes are compared, and through a transfer by Java.
func TestJavaReadsWhatGoWrites(t *testing.T) {
	testenv.In(t, testenv.All)
	eachStringCodec(t, func(ctx context.Context, f fixture, codec Codec) {
		for _, format := range []redisson.MemberFormat{formats[f.jvm.Version()], redisson.Both} {
			f.javaReads(ctx, f.both(codec, redisson.Format(format)), textsFor(codec))
		}
	})
}

func (f fixture) javaReads(ctx context.Context, b both, texts []text) {
	f.Helper()
	var ms []backend.Message
	var want []any
	due := time.Now().Add(150 * time.Millisecond)
	for _, s := range texts {
		ms = append(ms, backend.Message{Body: []byte(s.ours), Due: due})
		want = append(want, s.theirs)
	}
	later := slices.Clone(ms)
	for i := range later {
		later[i].Due = due.Add(time.Hour)
	}
	b.push(ctx, later...)
	f.equal("readAll", got(b.java.ReadAll(ctx))(f.T), want)
	for _, s := range texts {
		if !got(b.java.Contains(ctx, s.theirs))(f.T) || !got(b.java.Remove(ctx, s.theirs))(f.T) {
			f.Errorf("Java does not find %.40q by its bytes", s.ours)
		}
	}
	f.is(b.java.Size(ctx))(0)
	b.push(ctx, ms...)
	var taken []any
	for range ms {
		taken = append(taken, got(b.java.Take(ctx, 20*time.Second))(f.T))
	}
	f.equal("take", taken, want)
}

func (f fixture) equal(what string, got, want []any) {
	f.Helper()
	if len(got) != len(want) {
		f.Errorf("%s gives %d values, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			f.Errorf("%s gives %.60q, want %.60q", what, got[i], want[i])
		}
	}
}

// TestGoReadsWhatJavaWrites shows the way back, and that Go would have written the same payload.
func TestGoReadsWhatJavaWrites(t *testing.T) {
	testenv.In(t, testenv.All)
	eachStringCodec(t, func(ctx context.Context, f fixture, codec Codec) {
		b := f.both(codec)
		texts := textsFor(codec)
		for _, s := range texts {
			must(f.T, b.java.Offer(ctx, s.theirs, time.Hour))
		}
		q := b.open(ctx)
		for _, p := range b.pending(ctx) {
			f.writesTheSame(codecOf(codec, f.jvm.Version()), p)
			must(f.T, errors.Join(q.Reschedule(ctx, []backend.Move{{ID: p.ID}})...))
		}
		left := map[string]int{}
		for _, s := range texts {
			left[s.ours]++
		}
		for _, body := range take(ctx, f.T, q, len(texts)) {
			if left[body]--; left[body] < 0 {
				f.Errorf("received %.60q, which was not offered, or was received twice", body)
			}
		}
		b.empty(ctx)
	})
}

func (f fixture) writesTheSame(codec redisson.Codec, p redisson.Pending) {
	f.Helper()
	m := got(redisson.ParseMember(p.Member))(f.T)
	payload := got(codec.Encode(p.Body))(f.T)
	want := formats[f.jvm.Version()]
	if want == redisson.V1 && p.Member[0] == 7 { // one in 256 ids is read as either
		want = redisson.Both
	}
	if p.Err != nil || p.Format != want || string(payload) != string(m.Payload) {
		f.Errorf("member %.40x, %v, %v: Go would have written %.40x", p.Member, p.Format, p.Err, payload)
	}
	if n := binary.LittleEndian.Uint64(p.Member[len(p.Member)-len(m.Payload)-8:]); n != uint64(len(payload)) {
		f.Errorf("its length is %d, want %d", n, len(payload))
	}
}
