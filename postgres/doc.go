// Package postgres keeps messages in PostgreSQL, version 13 or newer.
//
// A queue asks the server only when it must. A claim is one statement, which also returns when the
// next message is due, and sleeping workers wake then. A push of a message that is due before the
// other processes look again tells them by NOTIFY. All queues of a backend share one connection for
// LISTEN. Where there is none, as with [NewDB], workers look once a second.
//
// # URLs
//
//	postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE?queue=QUEUE[&NAME=VALUE&…]
//
//	schema=public               the schema of the tables
//	prefix=delayq_              how the names of the tables begin
//	poll=1s                     how long an idle queue sleeps without a wake-up
//	migrate=true                false: the tables are there already
//
// All other parameters are those of pgx, as sslmode or pool_max_conns. The scheme postgresql is the
// same. The queue's name is delayq.Named or the parameter queue.
//
// # What it promises
//
// Everything that package delayq offers. A push that has returned is as durable as a commit of the
// server: synchronous_commit and the replicas decide.
//
// # Time
//
// The clock is the server's clock_timestamp(). Due times and leases are whole microseconds, rounded
// up. With delayq.WithClock a queue runs in virtual time against a real server.
//
// # Transactions
//
// delayq.InTx takes a pgx.Tx or a *sql.Tx on the same database, whether New or NewDB made the
// backend. The commit sends the notification that wakes workers. Ids that a transaction touches are
// locked until it ends; claims pass by them.
//
// # PgBouncer
//
// In the pooling modes transaction and statement, use a pool whose default_query_exec_mode is exec
// or simple_protocol: prepared statements and LISTEN belong to a session. Workers then look once a
// second, and at each due time that they know.
//
// docs/sql.md draws the tables.
package postgres
