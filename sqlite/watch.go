package sqlite

import (
	"os"
	"time"
)

const (
	watchEvery = 10 * time.Millisecond
	perHandle  = 200 * time.Microsecond // longer for each handle, since a change has all of them look
)

// A walIndex is the header of the WAL's index, at the beginning of the file -shm. Each commit of any
// process changes it, at the moment when others can see the commit. The WAL itself and its time
// change earlier, before the flush of the disk.
type walIndex [48]byte

// watch wakes the handles when another process has changed the file. It reads the index's header,
// which is no statement; only when that is new it asks SQLite whether the change was this process's
// own.
func (f *file) watch() {
	defer close(f.watched)
	var seen walIndex
	version := f.version
	for {
		handles := f.hub.Handles()
		t := time.NewTimer(max(watchEvery, time.Duration(handles)*perHandle))
		select {
		case <-f.writer.ending.Done():
			t.Stop()
			return
		case <-t.C:
		}
		if handles == 0 {
			continue
		}
		var now walIndex
		if _, err := f.shm.ReadAt(now[:], 0); err == nil && now == seen {
			continue
		}
		seen = now
		if v := f.dataVersion(); v != version {
			version = v
			f.hub.WakeAll()
		}
	}
}

// dataVersion returns a number that changes when another connection has committed.
func (f *file) dataVersion() (v int64) {
	f.writer.outside(func(c *conn) { v, _ = c.number("data_version") })
	return v
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
