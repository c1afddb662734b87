package main

import (
	"context"
	"errors"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// openStore connects to the store of a URL, and returns the queue that the URL names, if it does. It
// opens no queue.
func openStore(ctx context.Context, url string) (b backend.Backend, queue string, err error) {
	mux := backend.DefaultMux()
	b, queue, err = mux.Open(ctx, url)
	if errors.Is(err, delayq.ErrInvalid) {
		alone, _, other := mux.OpenNamed(ctx, url, "queue")
		if !errors.Is(other, delayq.ErrInvalid) { // a URL of a store alone
			return alone, "", other
		}
	}
	return b, queue, err
}
