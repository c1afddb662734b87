package main

import "errors"

// A text is the value of a flag that may not be empty. A flag with a variable that is not set would
// count as not given: --tokens= would let everyone in, and --reason= would select all.
type text string

func readText(value string) (text, error) {
	if value == "" {
		return "", errors.New("allowed is a text that is not empty")
	}
	return text(value), nil
}
