package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/demo"
)

// The exit codes.
const (
	exitOK          = 0
	exitBroken      = 1
	exitUnusable    = 2
	exitPartly      = 3
	exitUnsupported = 4
	exitStore       = 5
	exitOutput      = 6
	exitInterrupted = 130 // 128 + SIGINT, as shells count
	exitPipe        = 141 // 128 + SIGPIPE
)

// exits is the table of them, for the help and the documentation.
var exits = []struct {
	code    int
	meaning string
}{
	{exitOK, "all went well; also for consume and stats --watch when a signal ended them in good order"},
	{exitBroken, "a promise was broken; doctor found worse than a note"},
	{exitUnusable, "wrong usage or bad input; nothing was done"},
	{exitPartly, "some of it was not done: a line was bad, the input could not be read to its end, or a message is not there, in flight, or there already"},
	{exitUnsupported, "this backend cannot do that"},
	{exitStore, "the store cannot be reached, fails or is full; later it may go well"},
	{exitOutput, "the output could not be written, as on a full disk; earlier changes are done, and standard error names them"},
	{exitInterrupted, "interrupted before it was done"},
	{exitPipe, "the reader of the output has gone, as in \"| head\"; else as 6"},
}

// exitTable is the table as lines of text.
func exitTable() string {
	var b strings.Builder
	for _, e := range exits {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	return b.String()
}

// errPartly is wrapped by an error that counts the failures.
var errPartly = errors.New("not done")

// storeError is a failure of a store that no operation of a queue reports.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case isAny(err, demo.ErrBroken, errBroken): // outranks other errors
		return exitBroken
	case isUnwritten(err) && errors.Is(err, syscall.EPIPE): // the reader has gone, as in "| head"
		return exitPipe
	case isUnwritten(err):
		return exitOutput
	case isAny(err, demo.ErrInterrupted, context.Canceled, delayq.ErrDrain):
		return exitInterrupted
	case storeFailed(err):
		return exitStore
	case isAny(err, errPartly, delayq.ErrNotFound, delayq.ErrInFlight, delayq.ErrDuplicate):
		return exitPartly
	case errors.Is(err, delayq.ErrUnsupported):
		return exitUnsupported
	}
	return exitUnusable
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// storeReplies are errors of a store that works.
var storeReplies = []error{
	errPartly, delayq.ErrNotFound, delayq.ErrInFlight, delayq.ErrDuplicate, delayq.ErrUnsupported, delayq.ErrInvalid, delayq.ErrUnknownScheme,
}

// storeFailed distinguishes failures of the store from its replies.
func storeFailed(err error) bool {
	var store storeError
	var op *delayq.OpError
	switch {
	case errors.Is(err, delayq.ErrFull), errors.As(err, &store):
		return true
	case errors.As(err, &op):
		return !isAny(op, storeReplies...)
	}
	return false
}
