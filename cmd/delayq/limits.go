package main

import (
	"errors"
	"time"

	"github.com/delayq/delayq"
)

// limitFlags are a message's own limits.
type limitFlags struct {
	Attempts          *int           `placeholder:"N" help:"After how many failures this message is dead, whatever the worker's --max-attempts says."`
	HandlerTimeout    *time.Duration `placeholder:"DURATION" help:"How long handling this message may take, whatever the worker's --timeout says."`
	ExpiresAfter      *time.Duration `placeholder:"DURATION" help:"How long after its due time the message may be handed out. An expired message is deleted."`
	Expires           *time.Time     `placeholder:"TIME" help:"Until when the message may be handed out, as \"2030-01-31 18:00\" or \"tomorrow 9:00\"."`
	DeadLetterExpired bool           `help:"Make the message a dead letter when it expires."`

	limits *delayq.Limits
}

func (f *limitFlags) read() error {
	for flag, wrong := range map[string]bool{
		"--attempts":        f.Attempts != nil && *f.Attempts < 1,
		"--handler-timeout": f.HandlerTimeout != nil && *f.HandlerTimeout <= 0,
		"--expires-after":   f.ExpiresAfter != nil && *f.ExpiresAfter <= 0,
	} {
		if wrong {
			return errors.New(flag + ": allowed is more than 0")
		}
	}
	l := delayq.Limits{DeadLetterExpired: f.DeadLetterExpired}
	if f.Attempts != nil {
		l.Attempts = *f.Attempts
	}
	if f.HandlerTimeout != nil {
		l.HandlerTimeout = *f.HandlerTimeout
	}
	if f.ExpiresAfter != nil {
		l.ExpiresAfter = *f.ExpiresAfter
	}
	if f.Expires != nil {
		l.Expires = *f.Expires
	}
	if l != (delayq.Limits{}) {
		f.limits = &l
	}
	return nil
}
