package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/delayq/delayq/backend"
)

var (
	// ErrSettled says that the delivery was settled before by another call. It takes the place of
	// [backend.ErrLeaseLost], which a store returns in both cases.
	ErrSettled = errors.New("delivery is settled already")
)

// A settlement is the state of the calls that settle one delivery. The store decides which of
// several concurrent calls succeeds. It returns ErrLeaseLost to the others, perhaps before the
// first one returns, so these wait to learn the reason.
type settlement struct {
	mu    sync.Mutex
	calls int           // under way
	done  bool          // one has succeeded
	lost  bool          // the store returned ErrLeaseLost to one
	inTx  bool          // one has succeeded in a transaction, which may be rolled back
	quiet chan struct{} // closed when no call is under way; nil while no call waits for that
}

// begin counts a call. It returns false when the delivery is settled and no call is needed.
func (s *settlement) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	s.calls++
	return true
}

// end records the result of a call.
func (s *settlement) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.done = s.done || err == nil
	s.lost = s.lost || errors.Is(err, backend.ErrLeaseLost)
	if s.quiet != nil && (s.calls == 0 || s.done) {
		close(s.quiet)
		s.quiet = nil
	}
}

// endInTx records the result of a call in a transaction of the caller.
func (s *settlement) endInTx(err error) {
	s.mu.Lock()
	s.inTx = s.inTx || err == nil
	s.mu.Unlock()
	if err == nil {
		err = errNotYet
	}
	s.end(err)
}

var errNotYet = errors.New("settled when the transaction commits")

// outcome returns the error of a call that has ended. It distinguishes a lease that was lost from
// one that another call settled. It waits for the other calls' results, but not longer than ctx.
func (s *settlement) outcome(ctx context.Context, err error) error {
	if !errors.Is(err, backend.ErrLeaseLost) {
		return err
	}
	if quiet := s.others(); quiet != nil {
		select {
		case <-quiet:
		case <-ctx.Done():
		}
	}
	if s.settled() {
		return ErrSettled
	}
	return err
}

// others returns a channel that is closed when no other call is under way, nil when none is.
func (s *settlement) others() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || s.calls == 0 {
		return nil
	}
	if s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	return s.quiet
}

func (s *settlement) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done || s.lost || s.inTx || s.calls > 0
}

func (s *settlement) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done || s.inTx
}

func (s *settlement) inTransaction() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inTx && !s.done
}
