package main

import "errors"

// A text is the value of a flag that may not be empty. A flag with a variable that is not set would
// count as not given: --tokens= would let everyone in, and --reason= would select all.
type text string

// UnmarshalText is called by the parser for a flag that is given.
func (t *text) UnmarshalText(value []byte) error {
	if *t = text(value); *t == "" {
		return errors.New("allowed is a text that is not empty")
	}
	return nil
}
