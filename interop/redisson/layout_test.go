package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

// payloads are "hello" as the codecs write it, in hex, and the default codec of each release.
var payloads = map[Codec]string{
	String:      "68656c6c6f",
	Bytes:       "68656c6c6f",
	Jackson:     "2268656c6c6f22",
	Jackson3:    "2268656c6c6f22",
	Marshalling: "043e0568656c6c6f",
	Kryo5:       "0368656c6cef",
}

var defaults = map[string]Codec{"3.16.8": Marshalling, "3.20.1": Kryo5, "3.52.0": Kryo5, "4.7.0": Kryo5}

// headers check the bytes before the payload: a random id, which is a number in the older layout
// and bytes with their length in the newer one, and the length of the payload.
var headers = map[string]func(header []byte, payload int) error{
	"3.16.8": older, "3.20.1": older, "3.52.0": newer, "4.7.0": newer,
}

func older(header []byte, payload int) error { return hasLength(header, 8, payload) }

func newer(header []byte, payload int) error {
	if len(header) == 0 || header[0] != 8 {
		return fmt.Errorf("header %x does not begin with the length of an id of 8 bytes", header)
	}
	return hasLength(header, 9, payload)
}

func hasLength(header []byte, at, payload int) error {
	if len(header) != at+8 || binary.LittleEndian.Uint64(header[at:]) != uint64(payload) {
		return fmt.Errorf("header %x has not the length %d behind %d bytes, and nothing more", header, payload, at)
	}
	return nil
}

func TestMemberLayout(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for _, codec := range Codecs(f.jvm.Version()) {
			q := f.queue(WithCodec(codec))
			value := any("hello")
			if codec == Bytes {
				value = []byte("hello")
			}
			must(f.T, q.Offer(ctx, value, time.Hour))
			f.memberIs(ctx, keysOf(q.Name()), payload(codec, f.jvm.Version()))
		}
	})
}

func payload(codec Codec, version string) string {
	if codec == Default {
		codec = defaults[version]
	}
	return payloads[codec]
}

func (f fixture) memberIs(ctx context.Context, k keys, wantHex string) {
	f.Helper()
	want := got(hex.DecodeString(wantHex))(f.T)
	due := got(f.redis.ZRange(ctx, k.due, 0, -1).Result())(f.T)
	index := got(f.redis.LRange(ctx, k.index, 0, -1).Result())(f.T)
	if len(due) != 1 || !slices.Equal(due, index) {
		f.Fatalf("%s holds %q, %s holds %q", k.due, due, k.index, index)
	}
	header, found := bytes.CutSuffix([]byte(due[0]), want)
	if !found {
		f.Fatalf("member %x does not end with %x", due[0], want)
	}
	if err := headers[f.jvm.Version()](header, len(want)); err != nil {
		f.Error(err)
	}
}

func TestKeys(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		plain := f.name()
		for _, c := range []struct{ name, prefix string }{
			{plain, ""}, {"{" + plain + "}:tagged", ""}, {plain, "pre:"}, {plain, "{pre}:"},
		} {
			f.keysAre(ctx, f.jvm.Queue(c.name, WithCodec(String), WithNamePrefix(c.prefix)), keysOf(c.prefix+c.name))
		}
	})
}

func (f fixture) keysAre(ctx context.Context, q *Queue, k keys) {
	f.Helper()
	must(f.T, q.Offer(ctx, "far", time.Hour))
	must(f.T, q.Offer(ctx, "near", time.Millisecond))
	eventually(ctx, f.T, "the near value in "+k.ready, func() bool {
		return f.redis.LLen(ctx, k.ready).Val() == 1
	})
	f.is(f.redis.LRange(ctx, k.ready, 0, -1).Result())([]string{"near"})
	f.is(f.redis.ZCard(ctx, k.due).Result())(int64(1))
	f.is(f.redis.LLen(ctx, k.index).Result())(int64(1))
	f.is(q.PollReady(ctx))("near")
	f.is(q.Poll(ctx))("far")
	must(f.T, q.Destroy(ctx))
	f.is(f.redis.Exists(ctx, k.all()...).Result())(int64(0))
}

// TestChannel shows that a new head is published as its due time, its score.
func TestChannel(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue()
		k := keysOf(q.Name())
		sub := f.redis.Subscribe(ctx, k.channel)
		defer func() { must(f.T, sub.Close()) }()
		_, err := sub.Receive(ctx)
		must(f.T, err)
		before := got(f.jvm.Clock(ctx))(f.T)
		must(f.T, q.Offer(ctx, "hello", time.Hour))
		after := got(f.jvm.Clock(ctx))(f.T)
		message := got(sub.ReceiveMessage(ctx))(f.T)
		due := got(strconv.ParseInt(message.Payload, 10, 64))(f.T)
		if at := time.UnixMilli(due).Add(-time.Hour); at.Before(before.Truncate(time.Millisecond)) || at.After(after) {
			f.Errorf("due at %v, offered between %v and %v", at, before, after)
		}
		head := got(f.redis.ZRangeWithScores(ctx, k.due, 0, 0).Result())(f.T)
		if len(head) != 1 || head[0].Score != float64(due) {
			f.Errorf("published %d; the head is %v", due, head)
		}
	})
}
