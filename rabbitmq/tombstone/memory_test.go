package tombstone_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
)

// TestMemoryIsGivenBack lets a day of cancellations and settlements pass. Expired records do not
// pile up.
func TestMemoryIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := tombstone.NewMemory()
		before := heap()
		for i := range 24 * 60 {
			for j := range 50 {
				id := fmt.Sprintf("%d-%d", i, j)
				if errs := m.Cancel(t.Context(), "q", []string{"c" + id}, 10*time.Minute); errs[0] != nil {
					t.Fatal(errs)
				}
				h := []rabbitmq.Hold{{ID: "h" + id, Stamp: 1, Token: id}}
				if _, err := m.Take(t.Context(), "q", h, time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := m.Settle(t.Context(), "q", h, 10*time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		}
		// 1,000 records are in force of 144,000, which would take some 36 MB.
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%d bytes are left", grown)
		}
		runtime.KeepAlive(m)
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
