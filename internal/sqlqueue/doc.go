// Package sqlqueue is what the backends on SQL databases share: a handle whose Receives share one
// fetcher, wake-ups, statements in files, and how headers and cursors are written.
//
// A dialect implements [Messages] for one queue: each method is one transaction over a batch. A claim
// returns the time of the next event, and the handle sleeps until then. So a database is asked when
// something is due, and not in between. [Hub.Wake] tells handles of a nearer message.
package sqlqueue
