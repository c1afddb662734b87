package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// schemaVersion is the version of the tables that this package reads and writes.
const schemaVersion = 1

// A file is an open database.
type file struct {
	settings
	hub     handle.Hub
	writer  *writer
	readers chan *conn    // a nil one is yet to be opened
	version int64         // of the data, before the first handle
	shm     *os.File      // the WAL's index, which the watcher reads
	watched chan struct{} // closed when the watcher has ended
}

// mostReaders is how many calls read at the same time.
const mostReaders = 4

// openFile opens the database, and makes the file and its tables where there are none.
func openFile(ctx context.Context, s settings) (*file, error) {
	c, err := connect(s.path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE, s.busy)
	if err != nil {
		return nil, s.explainOpen(err)
	}
	old := c.SetInterrupt(ctx)
	err = s.prepare(ctx, c)
	c.SetInterrupt(old)
	if err != nil {
		_ = c.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.explainOpen(err)
	}
	shm, err := os.Open(s.path + "-shm")
	if err != nil {
		_ = c.Close()
		return nil, s.explainOpen(err)
	}
	f := &file{settings: s, shm: shm, readers: make(chan *conn, mostReaders), watched: make(chan struct{})}
	for range mostReaders {
		f.readers <- nil
	}
	f.hub.Poll, f.hub.MaxPoll = maxSleep, maxSleep
	f.writer = newWriter(c, &f.hub)
	f.version = f.dataVersion()
	go f.watch()
	return f, nil
}

// prepare sets a connection up to write, and checks or makes the schema.
func (s *settings) prepare(ctx context.Context, c *conn) error {
	// Two processes that turn a new file to WAL at once may block each other: SQLite then fails at
	// once, whatever the busy handler says.
	deadline := time.Now().Add(s.busy)
	for {
		err := c.Exec("PRAGMA journal_mode = WAL")
		if err == nil {
			break
		}
		if !errors.Is(err, sqlite3.BUSY) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(mostPatient * time.Millisecond)
	}
	if err := c.Exec("PRAGMA synchronous = " + s.sync); err != nil {
		return err
	}
	return makeSchema(c)
}

func makeSchema(c *conn) error {
	version, err := readVersion(c)
	if err == nil && version == 0 {
		version, err = createSchema(c)
	}
	if err == nil && version != schemaVersion {
		err = fmt.Errorf("its tables have version %d, and this release of delayq knows version %d: use the release that wrote the file, or a newer one",
			version, schemaVersion)
	}
	return err
}

// readVersion returns the version of the tables, 0 for none.
func readVersion(c *conn) (int64, error) {
	exists, err := c.number("has_schema")
	if err != nil || exists == 0 {
		return 0, err
	}
	version, err := c.number("read_version")
	return version, err
}

// createSchema makes the tables, unless another process has just made them.
func createSchema(c *conn) (version int64, err error) {
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return 0, err
	}
	version, err = readVersion(c)
	if err == nil && version == 0 {
		version, err = schemaVersion, c.Exec(sqlqueue.Statement(files, "sql", "schema"))
	}
	if err == nil {
		err = c.Exec("COMMIT")
	}
	if err != nil {
		_ = c.Exec("ROLLBACK")
	}
	return version, err
}

// read runs do on a connection that reads, and ends the transaction that do may begin.
func (f *file) read(ctx context.Context, do func(*conn) error) error {
	var c *conn
	select {
	case c = <-f.readers:
	case <-ctx.Done():
		return ctx.Err()
	case <-f.writer.ended:
		return backend.ErrClosed
	}
	var err error
	if c == nil {
		c, err = connect(f.path, sqlite3.OPEN_READWRITE, f.busy)
	}
	if err == nil {
		old := c.SetInterrupt(ctx)
		err = do(c)
		c.SetInterrupt(old)
		if !c.GetAutocommit() { // once ctx has ended, do cannot end it: nothing runs
			err = errors.Join(err, c.Exec("ROLLBACK"))
		}
	}
	f.readers <- c
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(err)
}

// number returns the number of a queue, which it enters where it is new.
func (f *file) number(ctx context.Context, name string) (n int64, err error) {
	if n, err = f.find(ctx, name); err != nil || n != 0 {
		return n, err
	}
	var entered int64
	err = f.writer.submit(ctx, func(t *tx) (err error) {
		if _, err = t.exec("add_queue", name); err == nil {
			entered, _, err = t.number("find_queue", name)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return entered, nil
}

// close ends the writer and closes the connections. It waits for calls under way.
func (f *file) close() error {
	if !f.writer.close() {
		return fmt.Errorf("closing %s: %w: the disk does not reply", f.path, backend.ErrUnavailable)
	}
	<-f.watched
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	for range mostReaders {
		select {
		case c := <-f.readers:
			if c != nil {
				_ = c.Close()
			}
		case <-late.C:
			return fmt.Errorf("closing %s: %w: a read goes on", f.path, backend.ErrUnavailable)
		}
	}
	// The last connection moves what the WAL has to the file, and removes the WAL.
	err := f.writer.conn.Close()
	_ = f.shm.Close() // not before the connections: to close a file ends a process's POSIX locks on it
	if err != nil {
		return fmt.Errorf("closing %s: %w", f.path, explain(err))
	}
	return nil
}

// explain returns what an error of SQLite means to a queue.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		return fmt.Errorf("%w: another process has held the file's lock for longer than the busy timeout: %w", backend.ErrUnavailable, err)
	case errors.Is(err, sqlite3.FULL):
		return fmt.Errorf("%w: the disk is full, or a quota: %w", backend.ErrFull, err)
	case errors.Is(err, sqlite3.READONLY):
		return fmt.Errorf("the file is read-only; give this process the right to write the file and its directory: %w", err)
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		return fmt.Errorf("the file is no SQLite database, or is damaged; name another file, or restore it from a backup: %w", err)
	case errors.Is(err, sqlite3.IOERR):
		return fmt.Errorf("%w: reading or writing the file failed: %w", backend.ErrUnavailable, err)
	}
	return err
}

// explainOpen is explain for the error of opening the file.
func (s *settings) explainOpen(err error) error {
	if errors.Is(err, sqlite3.CANTOPEN) {
		err = fmt.Errorf("the file cannot be opened or made; its directory must exist, and this process must have the right to write in it: %w", err)
		if dir := filepath.Dir(s.path); !exists(dir) {
			err = fmt.Errorf("there is no directory %s; make it first: %w", dir, fs.ErrNotExist)
		}
	}
	return fmt.Errorf("opening %s: %w", s.path, explain(err))
}
