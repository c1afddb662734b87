package redisson_test

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

func (p *place) subscribe() *redis.PubSub {
	p.t.Helper()
	s := p.raw.Subscribe(p.ctx, p.channel())
	p.t.Cleanup(func() { _ = s.Close() })
	_, err := s.Receive(p.ctx)
	must(p.t, err)
	return s
}

func (p *place) hears(s *redis.PubSub, want time.Time) {
	p.t.Helper()
	m, err := s.ReceiveMessage(p.ctx)
	must(p.t, err)
	if m.Payload != strconv.FormatInt(want.UnixMilli(), 10) {
		p.t.Errorf("the channel says %q, want %d", m.Payload, want.UnixMilli())
	}
}

// at pushes one body to be due then, and returns its id.
func (p *place) at(q backend.Queue, due time.Time, body string) string {
	p.t.Helper()
	ms := []backend.Message{{Body: []byte(body), Due: due}}
	must(p.t, q.Schedule(p.ctx, ms)...)
	return ms[0].ID
}

// prefixes are how a written member begins, and how long that is with the payload's length.
var prefixes = map[redisson.MemberFormat]struct {
	begin string
	n     int
}{redisson.V1: {"\x00", 16}, redisson.V2: {"\x08\x00", 17}, redisson.Both: {"\x07", 16}}

func TestKeysAfterAPush(t *testing.T) {
	t.Parallel()
	each(t, formats, func(t *testing.T, p *place, f redisson.MemberFormat) {
		heard := p.subscribe()
		q := p.open(redisson.Format(f), redisson.WithCodec(redisson.Kryo5String))
		due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		id := p.at(q, due.Add(-time.Nanosecond), "hello") // rounded up
		p.hears(heard, due)
		p.checkMember(f, id, due, "\x03hell\xef")
		p.at(q, due.Add(time.Second), "later") // not announced
		p.at(q, due.Add(-time.Second), "sooner")
		p.hears(heard, due.Add(-time.Second))
		if kinds := p.kinds(); !slices.Equal(kinds, []string{"string", "list", "zset"}) {
			t.Errorf("keys of the types %q: %q", kinds, p.keys())
		}
	})
}

func (p *place) kinds() (kinds []string) {
	for _, k := range []string{p.own("seq"), p.index(), p.times()} {
		kinds = append(kinds, p.raw.Type(p.ctx, k).Val())
	}
	if n := len(p.keys()); n != len(kinds) {
		kinds = append(kinds, fmt.Sprint(n))
	}
	return kinds
}

func (p *place) checkMember(f redisson.MemberFormat, id string, due time.Time, payload string) {
	p.t.Helper()
	members := p.members()
	if len(members) != 1 {
		p.t.Fatalf("members %v", members)
	}
	m, _ := members[0].Member.(string)
	want := prefixes[f]
	if !strings.HasPrefix(m, want.begin) || len(m) != want.n+len(payload) || m[want.n:] != payload {
		p.t.Errorf("the member is %x", m)
	}
	if n := binary.LittleEndian.Uint64([]byte(m[want.n-8:])); n != uint64(len(payload)) {
		p.t.Errorf("the member says that its payload has %d bytes, want %d", n, len(payload))
	}
	if score, err := p.raw.Eval(p.ctx, "return redis.call('ZSCORE', KEYS[1], ARGV[1])", []string{p.times()}, m).Text(); err != nil || score != strconv.FormatInt(due.UnixMilli(), 10) {
		p.t.Errorf("the score is %q, %v; want %d", score, err, due.UnixMilli())
	}
	if items := p.list(p.index()); !slices.Equal(items, []string{m}) {
		p.t.Errorf("the index list is %q, want %q", items, m)
	}
	if want := hex.EncodeToString([]byte(m[:want.n-8])) + "-" + strconv.FormatInt(due.UnixMilli(), 10); id != want {
		p.t.Errorf("the id is %s, want %s", id, want)
	}
}

// Members that Java writes come once each, and nothing is left of them.
func TestReceiveMessageOfJava(t *testing.T) {
	t.Parallel()
	ids := map[string]func() string{
		"V1":        func() string { return javaMember(redisson.V1, "") },
		"V2":        func() string { return javaMember(redisson.V2, "") },
		"V2 of 1":   randomID(1),
		"V2 of 16":  randomID(16),
		"V2 of 255": randomID(255),
	}
	for name, header := range ids {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			q := p.open(redisson.Sweep(200 * time.Millisecond))
			want := make(map[string]int)
			for i := range 30 {
				body := fmt.Sprintf("%d %s", i, strings.Repeat("x", i*i))
				want[body] = 1
				p.offer(withPayload(header(), body), time.Now().Add(time.Duration(i%5)*10*time.Millisecond))
			}
			ds := p.take(q, len(want), time.Minute)
			for _, d := range ds {
				if want[string(d.Body)]--; want[string(d.Body)] != 0 || d.Attempt != 1 {
					t.Errorf("got %q, attempt %d", d.Body, d.Attempt)
				}
			}
			must(t, q.Ack(p.ctx, leases(ds))...)
			p.empty()
		})
	}
}

// TestIdleWorkerGetsAPlainOffer adds a message as Java's blocking queue does, which wakes nobody,
// while a worker waits. The worker gets it at a sweep.
func TestIdleWorkerGetsAPlainOffer(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.Sweep(200 * time.Millisecond))
	got := make(chan []backend.Delivery, 1)
	go func() {
		ds, _ := q.Receive(p.ctx, 1, time.Minute)
		got <- ds
	}()
	await(t, "the worker to wait", func() bool { return p.raw.PubSubNumSub(p.ctx, p.channel()).Val()[p.channel()] == 1 })
	must(t, p.raw.RPush(p.ctx, p.name, "offered").Err())
	ds := <-got
	if texts := bodies(ds); len(texts) != 1 || texts[0] != "offered" {
		t.Fatalf("got %q", texts)
	}
	must(t, q.Ack(p.ctx, leases(ds))...)
	p.empty()
}

func randomID(n int) func() string {
	return func() string {
		id := make([]byte, n)
		_, _ = rand.Read(id) // it never fails
		return memberOf(redisson.V2, string(id), "")
	}
}

// withPayload puts a payload into an empty member.
func withPayload(header, payload string) string {
	return header[:len(header)-8] + string(binary.LittleEndian.AppendUint64(nil, uint64(len(payload)))) + payload
}
