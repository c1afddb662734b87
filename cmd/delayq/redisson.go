package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

type redissonCommand struct {
	Inspect    inspectCommand    `cmd:"" help:"Show a queue's keys, counts and member formats, and the first messages that wait."`
	Quarantine quarantineCommand `cmd:"" help:"List the members that no codec could read and that were put aside, or delete some of them for good."`
	Restore    restoreCommand    `cmd:"" help:"Put things from the quarantine back where they were."`
}

// sharedQueue is the queue that a URL names.
type sharedQueue struct {
	URL string `arg:"" name:"url" placeholder:"URL" help:"The queue: redisson://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?codec=…&prefix=…]"`
}

// use calls f with the backend and the queue's name.
func (q *sharedQueue) use(ctx context.Context, f func(b *redisson.Backend, queue string) error) (err error) {
	b, queue, err := redisson.OpenURL(ctx, q.URL)
	if err != nil {
		return fromStore(fmt.Errorf("opening the queue: %w", err))
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return fromStore(f(b, queue))
}

// fromStore marks errors of a store that failed. Replies and interruptions are not among them.
func fromStore(err error) error {
	if err == nil || isAny(err, storeReplies...) || errors.Is(err, context.Canceled) {
		return err
	}
	return storeError{err}
}

// lister gets a page of a listing.
type lister[T any] func(ctx context.Context, cursor string, limit int) (page []T, next string, err error)

// longestPage is the most that one call of a lister returns.
const longestPage = 1000

// first gets the first n items, page by page, and reports whether there are more.
func first[T any](ctx context.Context, list lister[T], n int) (items []T, more bool, err error) {
	cursor := ""
	for n > len(items) {
		page, next, err := list(ctx, cursor, min(n-len(items), longestPage))
		if err != nil {
			return nil, false, err
		}
		items = append(items, page...)
		if next == "" {
			return items, false, nil
		}
		cursor = next
	}
	return items, true, nil
}

// reportAside reports as reportOutcomes does; errs is nil where all went well.
func reportAside(std streams, done string, ids []string, errs []error) error {
	outcomes := make([]error, len(ids))
	copy(outcomes, errs)
	for i, err := range outcomes {
		switch {
		case errors.Is(err, backend.ErrNotFound):
			outcomes[i] = errNotAside
		case err != nil && !isAny(err, storeReplies...):
			return err
		}
	}
	return reportOutcomes(std, done, ids, outcomes, false)
}

// errNotAside is backend.ErrNotFound in other words.
var errNotAside = errors.New("nothing of that id is in the quarantine")
