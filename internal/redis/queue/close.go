package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
)

// closeWithin bounds how long Close waits for a server that does not reply. Then Close closes a
// client that it owns, which ends the client's calls. The calls of another client end by its own
// timeouts.
const closeWithin = 5 * time.Second

// Close is as in backend.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	open := b.queues
	was := b.closed
	b.queues, b.closed = make(map[*handle.Queue]struct{}), true
	b.mu.Unlock()
	if was {
		return nil
	}
	within, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	handle.CloseAll(maps.Keys(open))
	b.Calls.Go(b.hub.Close)
	b.registry.close()
	var err error
	if b.Owned {
		err = b.closeClient(within)
	}
	if !b.Calls.Wait(within) {
		err = errors.Join(err, fmt.Errorf("closing %s: %w: the client still waits for the server", b.Name, backend.ErrUnavailable))
	}
	return err
}

// closeClient closes the client, which may itself wait for a Sentinel.
func (b *Backend) closeClient(within context.Context) error {
	closed := make(chan error, 1)
	b.Calls.Go(func() { closed <- b.Client.Close() })
	select {
	case err := <-closed:
		return err
	case <-within.Done():
		return nil // Close reports that calls go on
	}
}
