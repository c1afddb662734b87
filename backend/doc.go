// Package backend is the contract between delayq and the stores that it runs on.
//
// A user of delayq needs only two things from here: the sentinel errors and the types of messages,
// which package delayq re-exports, and [Register] for a URL scheme of their own. The rest is for
// the author of a backend.
//
// # How to write a backend
//
//  1. Implement [Backend] and [Queue]. Their comments are the specification. The queue embeds
//     [Unsupported] and has the methods that the store can keep, and Close.
//  2. Declare in [Traits] every promise that the store cannot keep, with [Lacking] the features. The
//     zero value claims the most. Package delayq returns [ErrUnsupported] for what is lacking, with
//     the backend's name, and does not call the method.
//  3. Run package conformance over it. It checks every rule by name, and that what is declared
//     lacking is.
//  4. Register the package's name as a URL scheme, in an init function.
//
// What is common to all stores is not a backend's business: package delayq validates arguments,
// makes ids, retries, renews leases, counts failures and wraps errors with the operation's name,
// once for all of them. A backend returns plain errors, matched to the sentinels below where one
// fits.
//
// Package [github.com/delayq/delayq/backend/admin] has what a backend may offer to an operator.
package backend
