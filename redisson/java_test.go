package redisson_test

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/redisson"
)

// Java's operations on a queue, by hand: members with random ids, and a transfer that reads them as
// one version of Redisson does and fails on others. interop/redisson has the real ones.

// layouts are the formats by which a version of Redisson parses members.
var layouts = map[redisson.MemberFormat]string{redisson.V1: "dLc0", redisson.V2: "Bc0Lc0"}

// javaMember is a member as Java writes it.
func javaMember(f redisson.MemberFormat, payload string) string {
	id := make([]byte, 8)
	for id[0] == 0 || id[0] == 7 { // one of many thousands of these resembles one of ours
		_, _ = rand.Read(id) // it never fails
	}
	if f == redisson.V1 {
		long := float64(int64(binary.LittleEndian.Uint64(id)))
		binary.LittleEndian.PutUint64(id, math.Float64bits(long))
		if id[0] == 0 || id[0] == 7 {
			id[0] = 9 // 07 would make it a member for both, as one of 256 is
		}
	}
	return memberOf(f, string(id), payload)
}

func memberOf(f redisson.MemberFormat, id, payload string) string {
	if f == redisson.V2 {
		id = string([]byte{byte(len(id))}) + id
	}
	return id + string(binary.LittleEndian.AppendUint64(nil, uint64(len(payload)))) + payload
}

// offer writes a member as Java offers it.
func (p *place) offer(member string, due time.Time) {
	p.t.Helper()
	_, err := p.raw.TxPipelined(p.ctx, func(tx redis.Pipeliner) error {
		tx.ZAdd(p.ctx, p.times(), redis.Z{Score: float64(due.UnixMilli()), Member: member})
		tx.RPush(p.ctx, p.index(), member)
		return nil
	})
	must(p.t, err)
	if head := p.members(); len(head) > 0 && head[0].Member == member {
		must(p.t, p.raw.Publish(p.ctx, p.channel(), due.UnixMilli()).Err())
	}
}

// javaTransfer moves due messages to the destination.
var javaTransfer = redis.NewScript(`
local entries = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[2], 'LIMIT', 0, 100)
for _, entry in ipairs(entries) do
  local _, text = struct.unpack(ARGV[1], entry)
  redis.call('RPUSH', KEYS[1], text)
  redis.call('LREM', KEYS[3], 1, entry)
end
if #entries > 0 then
  redis.call('ZREM', KEYS[2], unpack(entries))
end
return #entries`)

// transfer moves what is due then, as a version of Redisson does.
func (p *place) transfer(f redisson.MemberFormat, now time.Time) int {
	p.t.Helper()
	n, err := javaTransfer.Run(p.ctx, p.raw, []string{p.name, p.times(), p.index()}, layouts[f], now.UnixMilli()).Int()
	must(p.t, err)
	return n
}

// blpop takes from the destination list as a Java worker does.
func (p *place) blpop() string {
	p.t.Helper()
	item, err := p.raw.BLPop(p.ctx, patience, p.name).Result()
	must(p.t, err)
	return item[1]
}
