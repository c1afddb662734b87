package lease

import (
	"testing"
	"time"
	"unsafe"
)

// setBy returns the time that the process's clock would show had its wall clock been set by d: only
// the wall part differs. Package time has no way to make such a time, so this one knows its layout.
func setBy(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	was := at
	*(*uint64)(unsafe.Pointer(&at)) += uint64(d/time.Second) << 30
	if at.Sub(was) != 0 || at.UnixNano()-was.UnixNano() != int64(d) {
		t.Fatal("a time has another layout in this version of Go: this test has to follow")
	}
	return at
}

// A worker's leases are measured by its monotonic clock, so it does not matter that somebody sets
// the wall clock.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		began := time.Now()
		l := new(Lease)
		l.Take(take("a", 0).Token(), time.Minute, began, began.Add(time.Minute))
		after := func(d time.Duration) time.Time { return setBy(t, began.Add(d), jump) }
		if age := l.Age(after(time.Second)); age != time.Second {
			t.Errorf("set by %v: age %v, want 1s", jump, age)
		}
		if l.Expired(after(time.Minute-1)) || !l.Expired(after(time.Minute)) {
			t.Errorf("set by %v: the lease does not end after its minute", jump)
		}
		Extend(t.Context(), new(store), []*Lease{l}, 2*time.Minute, began)
		if l.Renewable(after(2*time.Minute)) || !l.Renewable(after(2*time.Minute+1)) {
			t.Errorf("set by %v: renewals do not begin where the extension ends", jump)
		}
		if asked, ok := l.Overtaken(after(time.Minute)); !ok || asked.Sub(after(time.Minute)) != time.Minute {
			t.Errorf("set by %v: overtaken %v, by %v", jump, ok, asked)
		}
		l.Renew(l.Until(), after(3*time.Minute))
		if l.Expired(after(3*time.Minute-1)) || !l.Expired(after(3*time.Minute)) {
			t.Errorf("set by %v: the lease does not end where it was renewed to", jump)
		}
	}
}

// A clock without a monotonic reading that is set back leaves a lease renewable.
func TestFakeClockIsSetBack(t *testing.T) {
	t.Parallel()
	l := take("a", 0)
	if !l.Renewable(epoch.Add(-time.Hour)) {
		t.Error("the lease is not renewable")
	}
	if _, ok := l.Overtaken(epoch.Add(-time.Hour)); ok {
		t.Error("nobody asked for a later end")
	}
}
