package redisson_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/redisson"
)

// Java's messages of one due time come in the order of its offers, to Java's workers and to ours.
func TestTiesKeepTheOrderOfOffers(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 100, 10 << 10} {
		for _, f := range javas {
			t.Run(fmt.Sprintf("%v/%dB", f, size), func(t *testing.T) {
				t.Parallel()
				p := setup(t)
				want := p.ties(f, 1200, size)
				q := p.open(redisson.Format(f))
				await(t, "the first part", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 500 })
				var got []string
				for range 600 {
					got = append(got, p.blpop())
				}
				got = append(got, bodies(p.take(q, 600, time.Minute))...)
				inOrder(t, got, want)
			})
		}
	}
}

// ties offers n messages of Java's due in one millisecond, and returns their bodies of so many
// bytes.
func (p *place) ties(f redisson.MemberFormat, n, size int) (texts []string) {
	p.t.Helper()
	due := float64(time.Now().Add(-time.Minute).UnixMilli())
	pipe := p.raw.Pipeline()
	for i := range n {
		texts = append(texts, fmt.Sprintf("%0*d", size, i))
		m := javaMember(f, texts[i])
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
