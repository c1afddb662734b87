package redisson_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// calls are how often the server has run each command since it was asked last.
func (p *place) calls() map[string]int {
	p.t.Helper()
	n := make(map[string]int)
	for name, stats := range p.raw.InfoMap(p.ctx, "commandstats").Val()["Commandstats"] {
		count, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n[strings.TrimPrefix(name, "cmdstat_")], _ = strconv.Atoi(count)
	}
	must(p.t, p.raw.ConfigResetStat(p.ctx).Err())
	return n
}

// Handing over and taking cost a message so many commands, however many others are due, in one
// millisecond or each in its own: no message is looked for among all that lie in the destination.
// How long a script takes is for BenchmarkLongest to say.
func TestTheWorkForAMessageIsBounded(t *testing.T) {
	t.Parallel()
	for _, ties := range []bool{true, false} {
		t.Run(fmt.Sprintf("ties=%t", ties), func(t *testing.T) {
			t.Parallel()
			p := on(t, testenv.Redis(t, testenv.Private()))
			p.name = "q"
			const n = 700
			p.ties(redisson.V2, n, 100)
			if !ties {
				p.spread()
			}
			p.calls()
			q := p.open()
			await(t, "the first part", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 500 })
			p.take(q, n, time.Minute)
			calls := p.calls()
			if reads := calls["lrange"] + calls["zrange"] + calls["zrangebyscore"]; reads > 8*n || calls["linsert"] > 0 {
				t.Errorf("%d reads of a range and %d insertions for %d messages", reads, calls["linsert"], n)
			}
		})
	}
}

// spread makes the scheduled messages due a millisecond apart.
func (p *place) spread() {
	p.t.Helper()
	pipe := p.raw.Pipeline()
	for i, z := range p.members() {
		pipe.ZAdd(p.ctx, p.times(), redis.Z{Score: z.Score - float64(i), Member: z.Member})
	}
	_, err := pipe.Exec(p.ctx)
	must(p.t, err)
}
