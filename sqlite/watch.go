package sqlite

import (
	"os"
	"time"
)

const (
	watchEvery = 10 * time.Millisecond
	perHandle  = 200 * time.Microsecond // longer for each handle, since a change has all of them look
)

// watch wakes the handles when another process has changed the file. It looks at the WAL's size and
// time, which is no statement; only when these are new it asks SQLite whether the change was this
// process's own.
func (f *file) watch() {
	defer close(f.watched)
	var seen os.FileInfo
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
		now, err := os.Stat(f.path + "-wal")
		if handles == 0 || err != nil || !changed(seen, now) {
			continue
		}
		seen = now
		if v := f.dataVersion(); v != version {
			version = v
			f.hub.WakeAll()
		}
	}
}

// changed reports whether a file may have changed since it was seen. A second change within the
// grain of the file system's clock has the time of the first one: a change that is younger counts.
func changed(seen, now os.FileInfo) bool {
	const grain = 20 * time.Millisecond
	return seen == nil || seen.Size() != now.Size() || !seen.ModTime().Equal(now.ModTime()) ||
		time.Since(now.ModTime()) < grain
}

// dataVersion returns a number that changes when another connection has committed.
func (f *file) dataVersion() (v int64) {
	f.writer.outside(func(c *conn) { v, _, _ = c.number("data_version") })
	return v
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
