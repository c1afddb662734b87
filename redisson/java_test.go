package redisson_test

import (
	"crypto/rand"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/redisson"
)

// Java's operations on a queue, by hand: members with random ids, and scripts that read them as one
// version of Redisson does and fail on others.

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

const javaUnpack = `
local function text_of(entry)
  local _, text = struct.unpack(ARGV[1], entry)
  return text
end
`

var (
	javaTransfer = redis.NewScript(javaUnpack + `
local entries = redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[2], 'LIMIT', 0, 100)
for _, entry in ipairs(entries) do
  redis.call('RPUSH', KEYS[1], text_of(entry))
  redis.call('LREM', KEYS[3], 1, entry)
end
if #entries > 0 then
  redis.call('ZREM', KEYS[2], unpack(entries))
end
return #entries`)

	javaReadAll = redis.NewScript(javaUnpack + `
local texts = {}
for i, entry in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  texts[i] = text_of(entry)
end
return texts`)

	javaContains = redis.NewScript(javaUnpack + `
for i = 0, redis.call('LLEN', KEYS[3]) - 1 do
  if text_of(redis.call('LINDEX', KEYS[3], i)) == ARGV[2] then
    return 1
  end
end
return 0`)

	javaRemove = redis.NewScript(javaUnpack + `
for i = 0, redis.call('LLEN', KEYS[3]) - 1 do
  local entry = redis.call('LINDEX', KEYS[3], i)
  if text_of(entry) == ARGV[2] then
    redis.call('ZREM', KEYS[2], entry)
    return redis.call('LREM', KEYS[3], 1, entry)
  end
end
return 0`)

	javaPoll = redis.NewScript(javaUnpack + `
local entry = redis.call('LPOP', KEYS[3])
if not entry then
  return ''
end
redis.call('ZREM', KEYS[2], entry)
return text_of(entry)`)
)

// A java is a version of Redisson at the queue.
type java struct {
	*place
	layout string
}

func (p *place) java(f redisson.MemberFormat) java { return java{p, layouts[f]} }

func (j java) run(s *redis.Script, args ...any) *redis.Cmd {
	j.t.Helper()
	cmd := s.Run(j.ctx, j.raw, []string{j.name, j.times(), j.index()}, append([]any{j.layout}, args...)...)
	must(j.t, cmd.Err())
	return cmd
}

func (j java) transfer(now time.Time) int {
	n, _ := j.run(javaTransfer, now.UnixMilli()).Int()
	return n
}
func (j java) contains(text string) bool { yes, _ := j.run(javaContains, text).Bool(); return yes }
func (j java) remove(text string) bool   { yes, _ := j.run(javaRemove, text).Bool(); return yes }
func (j java) poll() string              { text, _ := j.run(javaPoll).Text(); return text }
func (j java) sees(want ...string) {
	j.t.Helper()
	if got, _ := j.run(javaReadAll).StringSlice(); !slices.Equal(got, want) {
		j.t.Errorf("Java sees %q, want %q", got, want)
	}
}

// blpop takes from the destination list as a Java worker does.
func (p *place) blpop() string {
	p.t.Helper()
	item, err := p.raw.BLPop(p.ctx, patience, p.name).Result()
	must(p.t, err)
	return item[1]
}
