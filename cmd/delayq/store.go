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
	switch b, _, other := mux.OpenNamed(ctx, url, "queue"); { // is it the URL of a store alone?
	case other == nil:
		return b, "", nil
	case !errors.Is(other, delayq.ErrInvalid): // it is, and the store fails
		return nil, "", other
	}
	return nil, "", err
}
