// Command delayq shows a delay queue at work: "delayq demo" plays the scenes that delay
// queues are bought for and says at its end whether the queue kept its promises. "delayq redisson"
// looks into a queue that Go and Java share.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // the client library's own log, whose news is in our errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
