package recipes_test

import (
	"fmt"
	"hash/fnv"
	"time"
)

// spread returns a time in the window from at on. One id always gets the same time, so that a push
// can be repeated.
func spread(at time.Time, window time.Duration, id string) time.Time {
	h := fnv.New64a()
	h.Write([]byte(id))
	return at.Add(time.Duration(h.Sum64() % uint64(window)))
}

// Ten thousand newsletters for nine o'clock go out within ten minutes.
func Example_spread() {
	nine := time.Date(2030, time.July, 1, 9, 0, 0, 0, time.UTC)
	perMinute := make([]int, 10)
	for i := range 10_000 {
		due := spread(nine, 10*time.Minute, fmt.Sprint("newsletter-", i))
		perMinute[due.Sub(nine)/time.Minute]++
	}
	for _, n := range perMinute {
		if n < 800 || n > 1200 {
			fmt.Println("uneven:", perMinute)
		}
	}
	fmt.Println("about 1,000 a minute")
	// Output: about 1,000 a minute
}
