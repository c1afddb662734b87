package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq"
)

// queueWithDeadLetters returns a queue with as many dead letters, named order-1 and so on.
func queueWithDeadLetters(ctx context.Context, n int) delayq.Queue {
	q, err := delayq.New(ctx, "orders", delayq.InMemory())
	if err != nil {
		panic(err)
	}
	for i := range n {
		if _, err := q.Push(ctx, nil, delayq.ID(fmt.Sprintf("order-%d", i+1))); err != nil {
			panic(err)
		}
		d, err := q.Receive(ctx)
		if err != nil {
			panic(err)
		}
		if err := d.DeadLetter(ctx, "no such customer"); err != nil {
			panic(err)
		}
	}
	return q
}

// Pages, for a web page or an API; All is simpler elsewhere.
func ExampleDeadLetters_List() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 3)
	defer q.Close()

	for cursor := ""; ; {
		page, next, err := q.Dead().List(ctx, cursor, 2)
		if err != nil {
			panic(err)
		}
		for _, letter := range page {
			fmt.Print(letter.ID, " ")
		}
		fmt.Println("end of page")
		if next == "" {
			break
		}
		cursor = next
	}
	// Output:
	// order-1 order-2 end of page
	// order-3 end of page
}

func ExampleDeadLetters_All() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 2)
	defer q.Close()

	for letter, err := range q.Dead().All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s died of %q after %d attempt\n", letter.ID, letter.Reason, letter.Attempts)
	}
	// Output:
	// order-1 died of "no such customer" after 1 attempt
	// order-2 died of "no such customer" after 1 attempt
}

// Once the bug is fixed, a message that died of it gets another chance.
func ExampleDeadLetters_Redrive() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 1)
	defer q.Close()

	if err := q.Dead().Redrive(ctx, "order-1"); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.ID, "attempt", d.Attempt)

	err = q.Dead().Redrive(ctx, "order-1")
	fmt.Println("not dead any more:", errors.Is(err, delayq.ErrNotFound))
	// Output:
	// order-1 attempt 1
	// not dead any more: true
}

func ExampleDeadLetters_RedriveAll() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 3)
	defer q.Close()

	n, err := q.Dead().RedriveAll(ctx)
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// After a fix of the mail handler, only its letters come back.
func ExampleDeadLetters_RedriveWhere() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 2)
	defer q.Close()
	if _, err := q.Push(ctx, []byte("mail"), delayq.Type("mail")); err != nil {
		panic(err)
	}
	d, err := q.Receive(ctx)
	if err != nil {
		panic(err)
	}
	if err := d.DeadLetter(ctx, "mail server: no answer"); err != nil {
		panic(err)
	}

	n, err := q.Dead().RedriveWhere(ctx, delayq.DeadFilter{
		ReasonPrefix: "mail server:",
		Headers:      map[string]string{delayq.TypeHeader: "mail"},
	})
	fmt.Println(n, err)
	// Output: 1 <nil>
}

// A job that runs each night.
func ExampleDeadLetters_DeleteWhere() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 3)
	defer q.Close()

	month := 30 * 24 * time.Hour
	n, err := q.Dead().DeleteWhere(ctx, delayq.DeadFilter{DiedBefore: time.Now().Add(-month)})
	fmt.Println(n, err)
	// Output: 0 <nil>
}

func ExampleDeadLetters_Delete() {
	ctx := context.Background()
	q := queueWithDeadLetters(ctx, 3)
	defer q.Close()

	if err := q.Dead().Delete(ctx, "order-1", "order-3"); err != nil {
		panic(err)
	}
	s, err := q.Stats(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("left:", s.Dead)
	// Output: left: 1
}
