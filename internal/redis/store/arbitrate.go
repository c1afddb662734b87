package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// Arbitrate takes messages without a script. It reads the due messages. Then one MULTI moves each
// of them to the leases. The reply of ZREM tells whether this worker was the first. A worker that
// dies loses nothing, since the MULTI does both or neither.
//
// A lease entry left by a worker that lost the race is harmless: it names an old member. The loser
// removes it. If the loser dies first, the entry ends like a lease, and expire drops it. If a mover
// works on the same queue, the message may wait in the mover's list under that member. If the entry
// ends before the message is taken from there, that counts as an attempt.
func (s *Store) Arbitrate(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
	node, err := s.node(ctx)
	if err != nil {
		return script.Claim{}, err
	}
	limit = min(limit, script.ChunkMessages)
	began := time.Now() // before the look, whose time the leases are by
	c, due, elsewhere, err := s.look(ctx, limit)
	switch {
	case err != nil:
		return c, err
	case elsewhere == inReady:
		return s.Claim(ctx, limit, lease, name)
	case elsewhere == inShards:
		return c, ErrSplit
	case len(due) == 0:
		return c, nil
	}
	bids := makeBids(due, c.Now, lease, name)
	paused, err := s.sendBids(ctx, node, bids)
	if err != nil {
		s.undo(ctx, node, bids)
		return s.withoutBids(ctx, began, limit, lease, name, err)
	}
	c.Next = c.Now // there may be more, and workers that lost the race look again
	var bad []unreadable
	c.Deliveries, bad, err = s.won(ctx, node, bids)
	s.putAside(ctx, &c, bad)
	if script.Unknown(ctx, err) {
		return s.reclaim(ctx, began, limit, lease, name)
	}
	if paused {
		s.returnAll(ctx, c.Deliveries)
		c.Deliveries = nil
	}
	return c, err
}

// returnAll gives back messages that the MULTI leased after the queue was paused, or that were replaced
// since.
func (s *Store) returnAll(ctx context.Context, ds []backend.Delivery) {
	rs := make([]backend.Return, len(ds))
	for i := range ds {
		rs[i] = backend.Return{Lease: ds[i].Lease(), Untouched: true}
	}
	for _, err := range s.Nack(ctx, rs) {
		if err != nil {
			s.Log.Warn("delayq: giving back a message that may not be handed out now failed; it returns when its lease ends", "err", err)
		}
	}
}

// withoutBids claims where the MULTI failed. A server that is out of memory rejects any MULTI that
// adds an entry, even one that removes one first. If the reply was lost, the MULTI may have been
// executed. Where the user has no right to MULTI, the bids were executed one by one.
func (s *Store) withoutBids(
	ctx context.Context, began time.Time, limit int, lease time.Duration, name string, failed error,
) (script.Claim, error) {
	err := script.Translate(failed)
	switch {
	case script.Unknown(ctx, failed), redis.HasErrorPrefix(failed, "NOPERM"):
		return s.reclaim(ctx, began, limit, lease, name)
	case errors.Is(err, backend.ErrFull), redis.HasErrorPrefix(failed, "EXECABORT"):
		return s.Claim(ctx, limit, lease, name)
	default:
		return script.Claim{}, fmt.Errorf("arbitrating: %w", err)
	}
}

// node returns the server that has the queue: the commands are one transaction there.
func (s *Store) node(ctx context.Context) (redis.Cmdable, error) {
	cluster, ok := s.Client.(*redis.ClusterClient)
	if !ok {
		return s.Client, nil
	}
	node, err := cluster.MasterForKey(ctx, s.keys.due())
	if err != nil {
		return nil, fmt.Errorf("finding the queue's server: %w", err)
	}
	return node, nil
}

// What look returns of messages that are not in due.
const (
	inReady  = int64(1)  // a mover left some
	inShards = int64(-1) // nothing is due, and the queue has shards
)

// look reads the time, the due messages, where others are, and the next event. It
// takes one command, so that an idle queue costs little. Messages of ended leases may be due before
// all others, so they are given back first.
func (s *Store) look(ctx context.Context, limit int) (c script.Claim, due []redis.Z, elsewhere int64, err error) {
	c, due, elsewhere, err = s.lookOnce(ctx, limit)
	if err != nil || c.Next.IsZero() || c.Next.After(c.Now) {
		return c, due, elsewhere, err
	}
	more, err := s.Run(ctx, expireScript)
	if err != nil || more == int64(1) { // their messages may be due before all others
		return c, nil, 0, err
	}
	return s.lookOnce(ctx, limit)
}

// lookOnce sets Next to now where a lease has ended.
func (s *Store) lookOnce(ctx context.Context, limit int) (c script.Claim, due []redis.Z, elsewhere int64, err error) {
	reply, err := s.Claims.Run(ctx, lookScript, limit)
	if err != nil {
		return c, nil, 0, err
	}
	c, r, ok := script.NewClaim(reply, lookHead)
	if !ok || (len(r)-lookHead)%2 != 0 {
		return c, nil, 0, script.Unexpected(lookScript, reply)
	}
	if !c.Next.IsZero() && !c.Next.After(c.Now) {
		c.Next = c.Now
	}
	for i := lookHead; i < len(r); i += 2 {
		z := redis.Z{Member: r[i], Score: float64(script.Int(r[i+1]))}
		if at := scoreTime(z.Score); at.After(c.Now) {
			c.Next = earlier(c.Next, at)
			break
		}
		due = append(due, z)
	}
	elsewhere, _ = r[2].(int64)
	return c, due, elsewhere, nil
}

// lookHead is the number of values before the messages.
const lookHead = 3

func scoreTime(score float64) time.Time { return time.UnixMilli(int64(score)).UTC() }

// earlier returns the earlier of two times, the first of which may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// bidMark comes before the claim's name in an entry that is a lease only if its bid won.
const bidMark = '?'

// A bid is one message that this worker contends for.
type bid struct {
	member string
	due    time.Time
	until  time.Time
	held   []byte

	removed, entered *redis.IntCmd
	noted            *redis.BoolCmd
}

func makeBids(due []redis.Z, now time.Time, lease time.Duration, name string) []*bid {
	until := ceilMS(now.Add(lease))
	bids := make([]*bid, len(due))
	for i, z := range due {
		member, _ := z.Member.(string)
		held := binary.BigEndian.AppendUint64(nil, math.Float64bits(z.Score))
		held = append(append(held, bidMark), name...)
		held = binary.BigEndian.AppendUint32(held, uint32(until.UnixMilli()))
		bids[i] = &bid{member: member, due: scoreTime(z.Score), until: until, held: held}
	}
	return bids
}

func ceilMS(t time.Time) time.Time {
	if ms := t.Truncate(time.Millisecond); ms.Before(t) {
		return ms.Add(time.Millisecond)
	}
	return t
}

// sendBids makes all bids in one MULTI, and returns whether the queue was paused by then. The client
// library does not repeat it: reclaim finds out whether it was executed.
func (s *Store) sendBids(ctx context.Context, node redis.Cmdable, bids []*bid) (paused bool, err error) {
	tx := node.TxPipeline()
	for _, b := range bids {
		b.removed = tx.ZRem(ctx, s.keys.due(), b.member)
		b.entered = tx.ZAddNX(ctx, s.keys.leases(), redis.Z{Score: float64(b.until.UnixMilli()), Member: b.member})
		b.noted = tx.HSetNX(ctx, s.keys.held(), b.member, b.held)
	}
	pause := script.NewOnce(ctx, "exists", s.keys.paused) // keeps the client library from repeating the whole
	_ = tx.Process(ctx, pause)
	_, err = tx.Exec(ctx)
	return pause.Val() == int64(1), err
}

// reclaim returns the messages that a claim of that name has leased since it began, else claims anew.
func (s *Store) reclaim(ctx context.Context, began time.Time, limit int, lease time.Duration, name string) (script.Claim, error) {
	reply, err := s.Claims.Again(ctx, began, claimScript, limit, script.Delay(lease), name)
	if err != nil {
		return script.Claim{}, err
	}
	c, err := s.claimed(ctx, reply)
	if len(c.Deliveries) == 0 {
		return c, err
	}
	if paused, _, failed := s.Paused(ctx); failed == nil && paused { // the MULTI may have leased them since
		s.returnAll(ctx, c.Deliveries)
		c.Deliveries = nil
	}
	return c, err
}

// won reads the messages of the bids that won, and removes the entries of the others.
func (s *Store) won(ctx context.Context, node redis.Cmdable, bids []*bid) ([]backend.Delivery, []unreadable, error) {
	var winners []*bid
	var ids, stale []string
	for _, b := range bids {
		switch {
		case b.removed.Val() == 1:
			winners = append(winners, b)
			ids = append(ids, b.member[min(seqLen+genLen, len(b.member)):])
		case b.noted.Val():
			stale = append(stale, b.member)
		}
	}
	s.dropStale(ctx, node, stale)
	if len(winners) == 0 {
		return nil, nil, nil
	}
	return s.read(ctx, node, winners, ids)
}

// undo puts back messages that a MULTI removed without leasing them: a MULTI goes on after a
// command that fails. look has checked the keys, so this happens only when one has changed since.
func (s *Store) undo(ctx context.Context, node redis.Cmdable, bids []*bid) {
	pipe := node.Pipeline()
	for _, b := range bids {
		if b.removed.Val() == 1 && (b.entered.Err() != nil || b.noted.Err() != nil) {
			pipe.ZAddNX(ctx, s.keys.due(), redis.Z{Score: float64(b.due.UnixMilli()), Member: b.member})
		}
	}
	if pipe.Len() > 0 {
		_, err := pipe.Exec(ctx)
		s.Log.Warn("delayq: a claim failed half-way; its messages go back", "err", err)
	}
}

func (s *Store) dropStale(ctx context.Context, node redis.Cmdable, members []string) {
	if len(members) == 0 {
		return
	}
	pipe := node.Pipeline()
	for _, m := range members {
		pipe.ZRem(ctx, s.keys.leases(), m)
		pipe.HDel(ctx, s.keys.held(), m)
	}
	_, _ = pipe.Exec(ctx) // else they end like leases
}

// read makes deliveries of the messages won. An unreadable one does not affect the others.
func (s *Store) read(ctx context.Context, node redis.Cmdable, winners []*bid, ids []string) (ds []backend.Delivery, bad []unreadable, err error) {
	pipe := node.Pipeline()
	contents := pipe.HMGet(ctx, s.keys.messages(), ids...)
	gens := pipe.HMGet(ctx, s.keys.gens(), ids...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, fmt.Errorf("reading messages: %w", script.OfRead(ctx, err))
	}
	ds = make([]backend.Delivery, 0, len(winners))
	var superseded []backend.Delivery
	for i, b := range winners {
		// purged since, or left by a script that was stopped
		if contents.Val()[i] == nil || b.stale(gens.Val()[i]) {
			continue
		}
		d, err := b.delivery(contents.Val()[i], gens.Val()[i])
		if err == nil && b.replaced(contents.Val()[i], gens.Val()[i]) {
			continue
		}
		if err == nil && replacedInFlight(gens.Val()[i]) { // it has another content since, which may not be due
			superseded = append(superseded, d)
			continue
		}
		if err != nil {
			// A lease with the mark is checked against the record, which is unreadable.
			node.HSet(ctx, s.keys.held(), b.member, slices.Delete(slices.Clone(b.held), 8, 9))
			bad = append(bad, unreadable{b.member, b.until})
			continue
		}
		ds = append(ds, d)
	}
	if superseded != nil {
		s.returnAll(ctx, superseded)
	}
	return ds, bad, nil
}

// replacedInFlight reports whether a message was replaced after the MULTI: its gens have the seq, and a
// mark behind it.
func replacedInFlight(gens any) bool {
	g, _ := gens.(string)
	return len(g) > 2*genLen+seqLen
}

// stale reports whether the message has another gen by now than this member.
func (b *bid) stale(gens any) bool {
	if len(b.member) < seqLen+genLen {
		return false
	}
	now := "\x00\x00\x00\x00"
	if g, _ := gens.(string); len(g) >= 2*genLen {
		now = g[:genLen]
	}
	return b.member[seqLen:seqLen+genLen] != now
}

// replaced reports whether the message has another place in the push order than this member,
// because it was purged and its id pushed again.
func (b *bid) replaced(message, gens any) bool {
	seq, _ := message.(string)
	if g, _ := gens.(string); len(g) > 2*genLen { // it was redriven
		seq = g[2*genLen:]
	}
	return len(seq) < seqLen || seq[:seqLen] != b.member[:seqLen]
}

// delivery reads a message: seq and content; gens, where there are any: gen and how often
// untouched.
func (b *bid) delivery(message, gens any) (d backend.Delivery, err error) {
	rec, _ := message.(string)
	lease, err := leaseOf(b.member)
	if err != nil || len(rec) < seqLen {
		return d, record.ErrCorrupt
	}
	d = backend.Delivery{ID: lease.ID, Token: until(lease.Token, b.until), Due: b.due, Until: b.until, Attempt: int(lease.Token.Lo) + 1}
	if g, ok := gens.(string); ok && len(g) >= 2*genLen {
		d.Attempt -= int(binary.BigEndian.Uint32([]byte(g[genLen : 2*genLen])))
	}
	d.Headers, d.Body, err = record.Content([]byte(rec[seqLen:]))
	return d, err
}
