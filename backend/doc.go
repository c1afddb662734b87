// Package backend is the contract between delayq and the stores that it runs on.
//
// A user of delayq needs only two things from here: the sentinel errors, which
// package delayq re-exports, and [Register] for a URL scheme of their own. The
// rest is for the author of a backend.
//
// # How to write a backend
//
//  1. Implement [Backend] and [Queue]. Their comments are the specification.
//  2. Implement those of [Canceler], [Rescheduler], [Inspector], [DeadLetters],
//     [Peeker] and [Purger] that the store can keep. Leave the others out:
//     package delayq answers them with [ErrUnsupported].
//  3. Declare in [Traits] every promise that the store cannot keep. The zero
//     value claims the most.
//  4. Run package conformance over it. It checks every rule by name.
//  5. Register the package's name as a URL scheme, in an init function.
//
// What is common to all stores is not a backend's business: package delayq
// validates arguments, makes ids, retries, renews leases, counts failures and
// wraps errors with the operation's name, once for all of them. A backend
// returns plain errors, matched to the sentinels below where one fits.
package backend
