package redisson

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/script"
)

// claimName is how many bytes of a claim's name are kept.
const claimName = 8

// claim leases up to limit due messages in one script. A message whose payload the codec cannot
// read becomes a dead letter, whole.
func (s *store) claim(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
	reply, err := s.Claims.Run(ctx, claimScript, min(limit, script.ChunkMessages), script.Delay(lease), name[:claimName])
	if err != nil {
		return script.Claim{}, err
	}
	if c, paused := whilePaused(reply); paused {
		return s.handOverPaused(ctx, c)
	}
	c, bad, err := s.parseClaim(reply)
	if len(bad) > 0 {
		s.deadLetterUnreadable(ctx, bad)
		c.Next = c.Now // there may be more
	}
	return c, err
}

// whilePaused reports whether a claim found the queue paused, which Java's workers do not know.
func whilePaused(reply any) (c script.Claim, paused bool) {
	c, r, _ := script.NewClaim(reply, claimHead)
	return c, len(r) > claimHead && r[claimHead] == "PAUSED"
}

// handOverPaused hands due messages over to Java, since no worker of Go may have them, and adds its
// next event to the one of the claim. The claim itself has not failed if that fails.
func (s *store) handOverPaused(ctx context.Context, c script.Claim) (script.Claim, error) {
	m, err := s.maintain(ctx)
	if err != nil {
		s.Log.WarnContext(ctx, "delayq: handing messages over to Java failed; trying again", "err", err)
		return c, nil
	}
	if c.Next.IsZero() || !m.Next.IsZero() && m.Next.Before(c.Next) {
		c.Next = m.Next
	}
	return c, nil
}

// claimHead is the number of values before the messages in a claim's reply: the time and the next
// event.
const claimHead = 2

func (s *store) parseClaim(reply any) (c script.Claim, bad []backend.DeadLetterRequest, err error) {
	c, r, ok := script.NewClaim(reply, claimHead)
	if !ok {
		return c, nil, script.Unexpected(claimScript, reply)
	}
	c.Deliveries = make([]backend.Delivery, 0, len(r)-claimHead)
	for _, reply := range r[claimHead:] {
		held, _ := reply.(string)
		d, err := s.delivery([]byte(held))
		if err != nil {
			bad = append(bad, backend.DeadLetterRequest{Lease: d.Lease(), Reason: err.Error()})
			continue
		}
		c.Deliveries = append(c.Deliveries, d)
	}
	return c, bad, nil
}

// A record of a lease is stamp: number (8 bytes), first end (ms, 8) | claim (8) | due time and
// origin (ms, doubles) | attempts (4) | lengths of key and prefix (2 each) | key | member. The key
// is left out where the member has it.
const (
	stampLen = 8 + 8
	heldLen  = stampLen + claimName + 8 + 8 + 4 + 2 + 2
)

func (s *store) delivery(held []byte) (d backend.Delivery, err error) {
	if len(held) < heldLen {
		return d, record.ErrCorrupt
	}
	keyLen, prefixLen := int(binary.BigEndian.Uint16(held[44:])), int(binary.BigEndian.Uint16(held[46:]))
	member := heldLen + keyLen
	payload := member + prefixLen + lenLen
	if len(held) < payload {
		return d, record.ErrCorrupt
	}
	key, ok := s.keyOf(held[heldLen:member], held[member:member+prefixLen], held[payload:])
	if !ok {
		return d, record.ErrCorrupt
	}
	end := binary.BigEndian.Uint64(held[8:])
	d = backend.Delivery{
		ID:      s.id(key, double(held[32:])),
		Due:     time.UnixMilli(double(held[24:])).UTC(),
		Attempt: int(binary.BigEndian.Uint32(held[40:])),
		Token:   backend.Token{Hi: binary.BigEndian.Uint64(held), Lo: end},
		Until:   time.UnixMilli(int64(end)).UTC(), //nolint:gosec // a time
	}
	if d.ID == "" {
		return d, record.ErrCorrupt // no worker could ack it
	}
	s.warnOfCodec(held[payload:])
	d.Headers, d.Body, err = s.open(held[payload:])
	return d, err
}

// keyOf returns the key of a leased message in the scripts: a key of its own, the id in its
// envelope, or else its prefix.
func (s *store) keyOf(own, prefix, payload []byte) (key string, ok bool) {
	switch {
	case len(own) > 0:
		return string(own), true
	case s.envelopes():
		return envelopeKey(payload)
	default:
		return string(prefix), true
	}
}

// open reads a payload.
func (s *store) open(payload []byte) (headers map[string]string, body []byte, err error) {
	if s.envelopes() {
		return unseal(payload)
	}
	body, err = s.codec.Decode(payload)
	return nil, body, err
}

// deadLetterUnreadable makes dead letters of messages that the codec cannot read.
func (s *store) deadLetterUnreadable(ctx context.Context, bs []backend.DeadLetterRequest) {
	for i, err := range s.Dead(ctx, bs) {
		if err != nil {
			s.Log.ErrorContext(ctx, "delayq: making a dead letter of an unreadable message failed; it comes again when its lease ends", "id", bs[i].ID, "err", err)
		}
	}
	for _, b := range bs {
		s.Log.ErrorContext(ctx, "delayq: a message that the codec cannot read is a dead letter now", "id", b.ID, "reason", b.Reason)
	}
}

// handOver is the most messages that wait in the destination list for Java. More would wait there
// although they can no longer be sorted; with fewer, Java would wait for Go.
const handOver = 500

// maintain runs while no worker waits: it ends leases and hands due messages over to Java.
func (s *store) maintain(ctx context.Context) (script.Claim, error) {
	reply, err := s.Run(ctx, maintainScript, handOver)
	if err != nil {
		return script.Claim{}, err
	}
	c, _, ok := script.NewClaim(reply, claimHead)
	if !ok {
		return c, script.Unexpected(maintainScript, reply)
	}
	return c, nil
}

// described returns the text, for a listing, of the error of bytes that the codec cannot read.
func described(err error) string {
	var bad *UnreadableError
	if errors.As(err, &bad) {
		return bad.Reason
	}
	return fmt.Sprint(err)
}
