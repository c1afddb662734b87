package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// A version is a release's major, minor and patch number. It is nil where there is none.
type version []int

var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)

func parseVersion(s string) (v version) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	for _, digits := range m[1:] {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return nil
		}
		v = append(v, n)
	}
	return v
}

func (v version) after(w version) bool { return slices.Compare(v, w) > 0 }

func (v version) String() string { return fmt.Sprintf("v%d.%d.%d", v[0], v[1], v[2]) }
