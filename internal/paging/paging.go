// Package paging reads lists that come in pages.
package paging

import (
	"context"
	"iter"
)

// A List returns up to limit items from a cursor on, and the cursor of the next page, "" after the
// last.
type List[T any] func(ctx context.Context, cursor string, limit int) (page []T, next string, err error)

// All ranges over the items of all pages. It ends after the first error.
func All[T any](ctx context.Context, list List[T], limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			page, next, err := list(ctx, cursor, limit)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = next
		}
	}
}

// Select returns what part gives of the items for which it reports true. With an error it returns
// those that came before.
func Select[T, P any](ctx context.Context, list List[T], limit int, part func(T) (P, bool)) (parts []P, err error) {
	for item, err := range All(ctx, list, limit) {
		if err != nil {
			return parts, err
		}
		if p, ok := part(item); ok {
			parts = append(parts, p)
		}
	}
	return parts, nil
}
