package main

import (
	"errors"
	"io"
)

// check reads the output of short runs of the benchmarks, and returns an error that names the lines
// that goals need and that are missing. Goals that need a run in full are left out.
func check(output io.Reader) error {
	results, _, err := parse(output)
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("the input has no results")
	}
	return errors.Join(missing(shortGoals(), results)...)
}

func shortGoals() (few []goal) {
	for _, g := range goals {
		if !g.long {
			few = append(few, g)
		}
	}
	return few
}
