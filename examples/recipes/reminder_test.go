package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/schedule"
)

// remind sets or moves a user's reminder: at an hour of the user's own day.
func remind(ctx context.Context, q delayq.Queue, user string, year int, month time.Month, day, hour int, zone *time.Location) (time.Time, error) {
	id, due := "reminder-"+user, time.Date(year, month, day, hour, 0, 0, 0, zone)
	_, err := q.Push(ctx, []byte(user), delayq.ID(id), delayq.At(due))
	if errors.Is(err, delayq.ErrDuplicate) { // it is set already: move it
		err = q.Reschedule(ctx, id, due)
	}
	return due, err
}

// The user moves from Berlin to Lisbon and keeps nine o'clock.
func Example_reminder() {
	ctx := context.Background()
	q, err := delayq.New(ctx, "reminders", delayq.InMemory())
	check(err)
	defer q.Close()
	for _, zone := range []string{"Europe/Berlin", "Europe/Lisbon"} {
		loc, err := time.LoadLocation(zone)
		check(err)
		due, err := remind(ctx, q, "anna", 2030, time.July, 1, 9, loc)
		check(err)
		fmt.Println(zone, due.UTC())
	}
	page, _, err := q.Peek(ctx, "", 10)
	check(err)
	fmt.Println(len(page), "reminder, due", page[0].Due.UTC())
	// Output:
	// Europe/Berlin 2030-07-01 07:00:00 +0000 UTC
	// Europe/Lisbon 2030-07-01 08:00:00 +0000 UTC
	// 1 reminder, due 2030-07-01 08:00:00 +0000 UTC
}

// Each working day at half past six in Berlin, in summer and in winter.
func Example_workingDays() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(err)
	mornings, err := schedule.CronIn("30 6 * * MON-FRI", berlin)
	check(err)
	friday := time.Date(2030, time.March, 29, 12, 0, 0, 0, berlin) // the clocks change on Sunday
	monday := mornings.Next(friday)
	fmt.Println(monday.In(berlin), "is", monday.UTC())
	// In a program: err = schedule.Repeat(ctx, q, "report", mornings, body)

	// Output: 2030-04-01 06:30:00 +0200 CEST is 2030-04-01 04:30:00 +0000 UTC
}
