// Package admin has the methods that a backend may offer to the operator of its store: to examine
// the servers, and to list and remove queues. It concerns servers and everything on them, while
// package backend concerns the messages of one queue. The command line uses it, and the function
// Queues of package delayq.
//
// All of it is optional: a [backend.Backend] that supports one of these has its methods.
package admin
