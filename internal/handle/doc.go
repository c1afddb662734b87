// Package handle makes a handle of the messages that a store keeps for one queue. All Receive calls of
// a handle share one fetcher: a goroutine that claims for them, and sleeps until a message is due. So a
// store is asked when something is due, and not in between.
//
// A store implements [Messages]. Its claim returns the time of the next event. A [Hub] wakes the
// fetchers of a backend for a message that is due before that.
package handle
