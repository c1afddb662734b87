package paging_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/delayq/delayq/internal/paging"
)

var errBroken = errors.New("broken")

// upTo lists the numbers below n, and fails when it is asked for the page that begins with fails.
func upTo(n, fails int) paging.List[int] {
	return func(_ context.Context, cursor string, limit int) (page []int, next string, err error) {
		from, _ := strconv.Atoi(cursor)
		if from == fails {
			return nil, "", errBroken
		}
		for i := from; i < min(from+limit, n); i++ {
			page = append(page, i)
		}
		if from+limit < n {
			next = strconv.Itoa(from + limit)
		}
		return page, next, nil
	}
}

func odd(n int) (string, bool) { return strconv.Itoa(n), n%2 == 1 }

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		n, fails int
		want     []string
		err      error
	}{
		{0, -1, nil, nil},
		{3, -1, []string{"1"}, nil},
		{9, -1, []string{"1", "3", "5", "7"}, nil},
		{9, 6, []string{"1", "3", "5"}, errBroken},
		{9, 0, nil, errBroken},
	} {
		got, err := paging.Select(t.Context(), upTo(c.n, c.fails), 3, odd)
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("of %d, failing at %d: %v, %v; want %v, %v", c.n, c.fails, got, err, c.want, c.err)
		}
	}
}

func TestAllStops(t *testing.T) {
	for n, err := range paging.All(t.Context(), upTo(9, 3), 3) {
		if err != nil {
			t.Fatal("it read the next page")
		}
		if n == 2 {
			break
		}
	}
}
