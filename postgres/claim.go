package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
)

// maxClaim is the most messages of one claim.
const maxClaim = 500

// A scanner knows where the next scan of a handle's claims starts. Deleted rows stay in the index
// until a vacuum, for long where an old snapshot is held. A scan from the beginning walks over all
// of them. So one starts where the last one ended, or at a nearer message that a wake-up tells of;
// and once in a while at the beginning, for a message whose wake-up was lost.
type scanner struct {
	mu     sync.Mutex
	due    int64 // no message that waits is due before
	lease  int64 // no lease that this process knows of ends before
	woken  int64 // the first due time of the wake-ups since the claim began
	sooner int64 // the first end of the leases that were extended since then
	whole  time.Time
	took   time.Duration // the last scan from the beginning
	before time.Duration // the one before it
	token  int64         // of the claim whose reply was lost; 0 for none
}

// all is before every message.
const all = math.MinInt64

// lower makes the next scan of messages start no later than due. The zero time is before every
// message and every lease.
func (s *scanner) lower(due time.Time) {
	if due.IsZero() {
		s.lowerTo(all, all)
		return
	}
	s.lowerTo(due.UnixMicro(), math.MaxInt64)
}

// lowerTo makes the next scans of messages and of leases start no later than there.
func (s *scanner) lowerTo(due, lease int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken, s.due = min(s.woken, due), min(s.due, due)
	s.sooner, s.lease = min(s.sooner, lease), min(s.lease, lease)
}

const (
	wholeEvery = time.Second
	wholeShare = 20 // scans from the beginning take at most a part of the time: one in so many
	// wholeWithin is the longest time between them, since no other claim finds the leases of a process
	// that was killed. Scans that are long themselves take one in so many of the time.
	wholeWithin    = 10 * time.Second
	longWholeShare = 4
)

// pause is the time from one scan from the beginning to the next. One that is long for once has met
// a stall.
func (s *scanner) pause() time.Duration {
	within := max(wholeWithin, longWholeShare*min(s.took, s.before))
	return max(wholeEvery, min(wholeShare*s.took, within))
}

// start returns where the scans of a claim start, and its token.
func (s *scanner) start(now time.Time, virtual bool) (due, lease, token int64, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken, s.sooner = math.MaxInt64, math.MaxInt64
	if virtual || now.Sub(s.whole) >= s.pause() {
		s.due, s.lease, s.whole = all, all, now
	}
	token, again = s.token, s.token != 0
	if !again {
		token = rand.Int64N(math.MaxInt64) + 1
	}
	return s.due, s.lease, token, again
}

// end notes what a claim found, which began its scans at due. After a claim that was repeated, the
// next one looks at everything: the tries whose replies were lost may have given back messages of
// leases that had ended, and nobody was told when these are due.
func (s *scanner) end(c *claimed, due int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if due == all {
		s.took, s.before = c.took, s.took
	}
	repeated := s.token != 0
	s.token = 0
	if repeated {
		s.due, s.lease = all, all
		return
	}
	s.due, s.lease = min(c.floor(), s.woken), min(c.leaseFloor(), s.sooner)
}

// lost notes that a claim's reply was lost. The next claim asks for its messages alone, and the one
// after it looks at everything.
func (s *scanner) lost(token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
	s.due, s.lease = all, all
}

// claimed is the reply to a claim. Times are microseconds.
type claimed struct {
	deliveries []delivered
	now        int64
	next       *int64 // when to look again
	lease      *int64 // the first end of a lease that was there before
	unseen     *int64 // a paused queue's: no message was looked for from here on
	took       time.Duration
}

type delivered struct {
	backend.Delivery
	seq int64
}

// lateCommits is how long after its time a push may be committed and still come in its turn, though
// its wake-up is late or lost.
const lateCommits = int64(500 * time.Millisecond / time.Microsecond)

// floor is where the next scan of messages starts.
func (c *claimed) floor() int64 {
	at := c.now - lateCommits
	if c.unseen != nil {
		at = min(at, max(*c.unseen, 0)) // below 0 would look at everything each time
	}
	if n := len(c.deliveries); n > 0 {
		at = min(at, c.deliveries[n-1].Due.UnixMicro())
	}
	return at
}

// leaseFloor is where the next scan of leases starts. Where none is left it is behind all: a later
// one is of this process, or is found by the scan from the beginning.
func (c *claimed) leaseFloor() int64 {
	at := int64(math.MaxInt64)
	if c.lease != nil {
		at = *c.lease
	}
	for _, d := range c.deliveries {
		at = min(at, d.Until.UnixMicro())
	}
	return at
}

// claim is as in handle.Source. After a lost reply it asks for the messages of that claim.
func (m *messages) claim(ctx context.Context, limit int, lease time.Duration) (handle.Claim, error) {
	m.b.listener.start()
	due, leases, token, again := m.scan.start(time.Now(), m.clock != nil)
	now := m.now()
	statement := m.b.cfg.call("claim", "text", "bigint", "int", "bigint", "bigint", "bigint", "bigint", "boolean")
	args := []any{m.queue, now.param(), min(limit, maxClaim), now.after(lease), token, due, leases, again}
	c, err := m.b.sendClaim(ctx, statement, args)
	for try := 1; try < mostTries && codeOf(err) == lockTimeout; try++ { // see claim.sql
		c, err = m.b.sendClaim(ctx, statement, args)
	}
	if err != nil {
		if errors.Is(err, backend.ErrOutcomeUnknown) {
			m.scan.lost(token)
		}
		return handle.Claim{}, err
	}
	slices.SortFunc(c.deliveries, func(a, b delivered) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.seq, b.seq)) })
	m.scan.end(&c, due)
	return c.claim(token), nil
}

// sendClaim runs the statement of a claim, and measures it alone: a wait for a connection is no part of
// a scan.
func (b *Backend) sendClaim(ctx context.Context, statement string, args []any) (claimed, error) {
	return callWith(ctx, b, func(ctx context.Context, e executor) (c claimed, err error) {
		began := time.Now()
		err = e.query(ctx, statement, args, func(s scan) error { return readClaimed(&c, s) })
		c.took = time.Since(began)
		return c, err
	})
}

func readClaimed(c *claimed, scan scan) error {
	var id *string
	var due int64
	var seq, until, first *int64
	var attempts *int
	var headers, body []byte
	if err := scan(&id, &due, &seq, &attempts, &until, &first, &headers, &body); err != nil {
		return err
	}
	if id == nil { // the last row
		if c.now, c.next, c.lease = due, seq, until; attempts != nil {
			c.unseen = first
		}
		return nil
	}
	d := delivered{seq: *seq}
	d.ID, d.Due, d.Attempt, d.Until, d.Body = *id, moment(due), *attempts, moment(*until), body
	var err error
	d.Headers, err = readHeaders(headers, first)
	c.deliveries = append(c.deliveries, d)
	return err
}

// lockedAgain is after how long a message is looked for again that a transaction holds.
const lockedAgain = 50 * time.Millisecond

func (c *claimed) claim(token int64) handle.Claim {
	claim := handle.Claim{Now: moment(c.now)}
	for i := range c.deliveries {
		d := &c.deliveries[i]
		d.Token = backend.Token{Lo: uint64(token)}
		claim.Deliveries = append(claim.Deliveries, d.Delivery)
	}
	if c.lease != nil && *c.lease <= c.now {
		// The lease has ended, and a transaction holds its message. Nobody tells when that is over.
		later := c.now + lockedAgain.Microseconds()
		c.lease = &later
	}
	for _, at := range []*int64{c.next, c.lease} {
		if at != nil && (claim.Next.IsZero() || moment(*at).Before(claim.Next)) {
			claim.Next = moment(*at)
		}
	}
	return claim
}
