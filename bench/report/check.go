package main

import (
	"errors"
	"io"
)

// check reads what short runs of the benchmarks say, and returns an error that names what goals need and no line has. Goals that
// need a run in full are left out.
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
