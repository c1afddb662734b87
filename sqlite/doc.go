// Package sqlite keeps queues in one SQLite file, for programs without a server. The driver is pure
// Go. Several processes of one machine may share the file.
//
//	q, err := delayq.New(ctx, "orders", delayq.WithBackend(sqlite.New("/var/lib/shop/delay.db")))
//
// # URLs
//
// sqlite:///var/lib/shop/delay.db/orders is the queue orders in the file /var/lib/shop/delay.db: the
// last part of the path is the queue. sqlite://delay.db/orders is a file in the working directory.
// A path that ends in .db, .sqlite or .sqlite3 is a file alone: the queue's name is delayq.Named. The
// parameter busy_timeout is [BusyTimeout], and synchronous=normal is [Relaxed].
//
// # What it promises
//
// Everything that package delayq offers, exactly: due times to the nanosecond, order by (due, push
// order). A call that returned nil is on the disk (WAL, synchronous = FULL): it survives kill -9 and
// a power cut.
//
// # Time
//
// Its clock is the process's wall clock, or the one given with delayq.WithClock. Within a process a
// push wakes the workers. A nearer message of another process is noticed within 50 ms: the header
// of the WAL's index is read every 10 ms, which is a call of the system and no statement. With more than fifty
// handles that wait, it is looked at less often. A jump of the wall clock is noticed within a
// minute.
//
// # Transactions
//
// delayq.InTx takes a *sql.Tx of the driver github.com/ncruces/go-sqlite3/driver on the same file,
// best begun with BEGIN IMMEDIATE (_txlock=immediate). It locks the file for all other writers until
// it ends. Workers notice the commit as they notice that of another process.
//
// # Cost
//
// One connection writes. Calls that come while it writes share the next commit, and so one flush of
// the disk. Counting the messages walks over an index.
package sqlite
