package redisson_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// Handing over and taking cost a message so many commands, however many others are due, in one
// millisecond or each in its own: no message is looked for among all that lie in the destination.
// How long a script takes is for BenchmarkRedissonScript to say.
func TestWorkForAMessageIsBounded(t *testing.T) {
	t.Parallel()
	for _, ties := range []bool{true, false} {
		t.Run(fmt.Sprintf("ties=%t", ties), func(t *testing.T) {
			t.Parallel()
			p := on(t, testenv.Redis(t, testenv.Private()))
			p.name = "q"
			const n = 700
			p.ties(redisson.V2, n, 100, nil)
			if !ties {
				p.spread()
			}
			before := redistest.Calls(t, p.raw)
			q := p.open()
			await(t, "the first part", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 500 })
			p.take(q, n, time.Minute)
			calls := redistest.Calls(t, p.raw)
			reads := -before["lrange"] - before["zrange"] - before["zrangebyscore"]
			reads += calls["lrange"] + calls["zrange"] + calls["zrangebyscore"]
			if reads > 8*n || calls["linsert"] > 0 {
				t.Errorf("%d reads of a range and %d insertions for %d messages", reads, calls["linsert"], n)
			}
		})
	}
}

// TestAScriptReadsFewLargeMembers has the server tell each range that a script asks for, while
// messages of 10 KB are handed over and taken. A script reads little more than it moves in its time.
func TestAScriptReadsFewLargeMembers(t *testing.T) {
	t.Parallel()
	for _, ties := range []bool{true, false} {
		t.Run(fmt.Sprintf("ties=%t", ties), func(t *testing.T) {
			t.Parallel()
			p := on(t, testenv.Redis(t, testenv.Private()))
			p.name = "q"
			const n, size = 200, 10 << 10
			p.ties(redisson.V2, n, size, nil)
			if !ties {
				p.spread()
			}
			stop := redistest.Monitor(t, p.raw)
			q := p.open()
			await(t, "all to be handed over", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == n })
			p.take(q, n, time.Minute)
			scripts, read, most, longest := 0, 0, 0, 0
			for _, line := range stop() {
				if strings.Contains(strings.ToLower(line), `"evalsha"`) {
					scripts, read = scripts+1, 0
				}
				wanted := p.wanted(line)
				read += wanted
				most, longest = max(most, read), max(longest, wanted)
			}
			t.Logf("%d scripts; one asks for %d members at most, and for %d at once", scripts, most, longest)
			if scripts == 0 || most == 0 || longest*size > 128<<10 || most*size > 1<<20 {
				t.Errorf("want some, of 1 MiB a script and 128 KiB at once at most")
			}
		})
	}
}

// wanted is how many members or payloads a command asks for.
func (p *place) wanted(line string) int {
	_, command, _ := strings.Cut(line, "] ")
	args := strings.Fields(strings.ReplaceAll(command, `"`, ""))
	if len(args) < 4 || args[1] != p.times() && args[1] != p.index() && args[1] != p.name {
		return 0
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		must(p.t, err)
		return n
	}
	switch strings.ToLower(args[0]) {
	case "zrangebyscore":
		return number(args[len(args)-1])
	case "zrange", "lrange":
		from, to := number(args[2]), number(args[3])
		if to < 0 && from >= 0 {
			p.t.Errorf("%.100s has no limit", line)
		}
		return to - from + 1
	default:
		return 0
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
