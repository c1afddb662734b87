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
	if !errors.Is(err, delayq.ErrInvalid) {
		return b, queue, err
	}
	alone, _, other := mux.OpenNamed(ctx, url, "queue")
	if errors.Is(other, delayq.ErrInvalid) {
		return nil, "", err
	}
	return alone, "", other // of a store alone
}
