// Command delayq does from a shell what package delayq does from a program: it pushes messages,
// runs a command for each as it becomes due, counts, shows, cancels, moves and deletes them.
// "delayq demo" plays the scenes that delay queues are bought for and reports whether the queue
// kept its promises. "delayq redisson" shows a queue that Go and Java share.
//
// docs/command-line.md has all commands, flags and exit codes.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // an image may have no zones

	"github.com/redis/go-redis/v9"
)

func main() {
	keepBrokenPipes()
	redis.SetLogger(&redisLog)
	log.SetOutput(io.Discard) // net/http quotes there what a receiver of webhooks says unasked
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, standardOutput(os.Args[1:]), os.Stderr))
}
