package redisson_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/redisson"
)

// Java's messages of one due time come in the order of its offers, to Java's workers and to ours,
// whatever their ids, such as those that look like this package's.
func TestTiesKeepTheOrderOfOffers(t *testing.T) {
	t.Parallel()
	looks := func(begin ...byte) func(i int) string {
		return func(i int) string {
			return string(append(slices.Clone(begin), bytes.Repeat([]byte{byte(200 - i)}, 8-len(begin))...))
		}
	}
	const looking = 150
	for name, tt := range map[string]struct {
		format  redisson.MemberFormat
		n, size int
		id      func(i int) string // nil for a random one
	}{
		"V1/1B": {redisson.V1, 1200, 1, nil}, "V1/100B": {redisson.V1, 1200, 100, nil}, "V1/10KB": {redisson.V1, 1200, 10 << 10, nil},
		"V2/1B": {redisson.V2, 1200, 1, nil}, "V2/100B": {redisson.V2, 1200, 100, nil}, "V2/10KB": {redisson.V2, 1200, 10 << 10, nil},
		"V1 that looks like ours": {redisson.V1, looking, 3, looks(0)}, "V2 that looks like ours": {redisson.V2, looking, 3, looks(0)},
		"V1 that looks like both": {redisson.V1, looking, 3, looks(7, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			want := p.ties(tt.format, tt.n, tt.size, tt.id)
			q := p.open(redisson.Format(tt.format))
			await(t, "the first part", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == int64(min(tt.n, 500)) })
			var got []string
			for range tt.n / 2 {
				got = append(got, p.blpop())
			}
			got = append(got, bodies(p.take(q, tt.n/2, time.Minute))...)
			inOrder(t, got, want)
		})
	}
}

// ties offers n messages of Java's due in one millisecond, and returns their bodies of so many
// bytes.
func (p *place) ties(f redisson.MemberFormat, n, size int, id func(i int) string) (texts []string) {
	p.t.Helper()
	due := float64(time.Now().Add(-time.Minute).UnixMilli())
	pipe := p.raw.Pipeline()
	for i := range n {
		texts = append(texts, fmt.Sprintf("%0*d", size, i))
		m := javaMember(f, texts[i])
		if id != nil {
			m = memberOf(f, id(i), texts[i])
		}
		pipe.ZAdd(p.ctx, p.times(), redis.Z{Score: due, Member: m})
		pipe.RPush(p.ctx, p.index(), m)
	}
	_, err := pipe.Exec(p.ctx)
	must(p.t, err)
	return texts
}

// inOrder tells how many neighbours changed places where the order is not that.
func inOrder(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	if !sameSet(got, want) {
		t.Errorf("got %.300q, want the same as %.300q", got, want)
	}
	inversions := 0
	for i := 1; i < len(got); i++ {
		if slices.Index(want, got[i-1]) > slices.Index(want, got[i]) {
			inversions++
		}
	}
	t.Errorf("%d inversions among %d messages", inversions, len(got))
}
