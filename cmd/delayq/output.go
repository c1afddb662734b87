package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// outputError says that the output could not be written. Earlier changes of the command are done.
type outputError struct{ err error }

func (e *outputError) Error() string { return "writing: " + e.err.Error() }

func (e *outputError) Unwrap() error { return e.err }

func isUnwritten(err error) bool {
	var unwritten *outputError
	return errors.As(err, &unwritten)
}

// keepBrokenPipes makes writes fail when the reader has gone. SIGPIPE would end the program while
// it holds leases. Unlike an ignored signal, a caught one does not change the commands that the
// program starts.
func keepBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// standardOutput fails for consume where the caller closed it, since messages written to nowhere
// would be lost. Other commands lose nothing. Programs that discard output often open /dev/null for
// reading too, which looks the same.
func standardOutput(args []string) io.Writer {
	if len(args) > 0 && args[0] == "consume" && closedOutput() {
		return noOutput{}
	}
	return os.Stdout
}

// noOutput is a standard output that is closed.
type noOutput struct{}

func (noOutput) Write([]byte) (int, error) {
	return 0, fmt.Errorf("standard output is closed, or /dev/null open for reading too (>/dev/null discards): %w", os.ErrClosed)
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return &outputError{err}
	}
	return nil
}

// An outputWriter returns an outputError, for the parser's help.
type outputWriter struct{ to io.Writer }

func (o outputWriter) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		err = &outputError{err}
	}
	return n, err //nolint:wrapcheck // it is wrapped
}

// writeJSON writes one value as a line.
func writeJSON(w io.Writer, value any) error {
	text, err := line(value)
	if err != nil {
		return err
	}
	return write(w, string(text))
}

// A tolerantWriter reports the bytes that it could not write, and returns no error, so that its
// caller goes on.
type tolerantWriter struct {
	to     io.Writer
	failed func(error)
}

func (t tolerantWriter) Write(p []byte) (int, error) {
	if _, err := t.to.Write(p); err != nil {
		t.failed(&outputError{err})
	}
	return len(p), nil
}

// doneUnwritten reports changes on standard error when the output cannot be written.
func doneUnwritten(std streams, done string, err error) error {
	if isUnwritten(err) {
		_, _ = fmt.Fprintln(std.err, "delayq: "+done)
	}
	return err
}
