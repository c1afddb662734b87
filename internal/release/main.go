// Release checks what a release needs: modules in step, the changelog, and an API that changes
// openly.
//
//	go run ./internal/release check        modules and CHANGELOG.md
//	go run ./internal/release tags v0.2.0  prints the tags to set now
//	go run ./internal/release api          compares the API with the last release
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(".", os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(dir string, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		_, err := check(dir)
		return err
	case len(args) == 2 && args[0] == "tags":
		return printTags(dir, args[1], out)
	case len(args) == 1 && args[0] == "api":
		return compareAPI(dir, out)
	}
	return errors.New("allowed is check, tags VERSION or api")
}

// A repository is what the checks read of a checkout.
type repository struct {
	dir     string
	modules []module // the library comes first
	changes changelog
}

// check returns all that is wrong in one error.
func check(dir string) (repository, error) {
	modules, err := readModules(dir)
	if err != nil {
		return repository{}, err
	}
	changes, err := readChangelog(dir)
	if err != nil {
		return repository{}, err
	}
	return repository{dir, modules, changes}, errors.Join(checkModules(modules), changes.check())
}
