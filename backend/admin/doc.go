// Package admin is what a backend may offer to the operator of its store: to examine the servers
// and to remove queues. It is about servers and all that is on them, where package backend is about
// the messages of one queue. The command line's doctor and verify use it; package delayq does not.
//
// All of it is optional: a [backend.Backend] that can do one of these has its methods.
package admin
