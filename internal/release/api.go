package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const apidiff = "golang.org/x/exp/cmd/apidiff@v0.0.0-20260218203240-3dfff04db8fa"

// compareAPI fails for an incompatible change since the last release that CHANGELOG.md does not
// list under Changed.
func compareAPI(dir string, out io.Writer) error {
	repo, err := check(dir)
	if err != nil {
		return err
	}
	last, err := lastRelease(dir)
	if err != nil {
		return err
	}
	required, err := libraryVersion(repo.modules)
	if err != nil {
		return err
	}
	if last == nil && required == unreleased {
		_, err := fmt.Fprintln(out, "api: nothing was compared: there is no release yet")
		return err
	}
	// A clone without tags must not pass for a project without releases.
	if v := parseVersion(required); last == nil || v.after(last) {
		return fmt.Errorf("modules require %s, and no such tag is here: fetch the tags", required)
	}
	tmp, err := os.MkdirTemp("", "delayq-api-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := extract(dir, last.String(), tmp); err != nil {
		return fmt.Errorf("extracting %s: %w", last, err)
	}
	return repo.compareModules(tmp, last, out)
}

func extract(dir, tag, to string) error {
	archive := filepath.Join(to, "release.tar")
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := command(to, "git", "-C", dir, "archive", "--output", archive, tag); err != nil {
		return err
	}
	_, err = command(to, "tar", "-xf", archive)
	return err
}

// compareModules looks at what was released, so that a module that is gone counts as a change.
func (r repository) compareModules(released string, last version, out io.Writer) error {
	modules, err := readModules(released)
	if err != nil {
		return err
	}
	entries := r.changes.changedSince(last)
	var errs []error
	for _, m := range modules {
		if !m.published() || m.isCommand() { // nothing imports it
			continue
		}
		dir := filepath.FromSlash(m.dir)
		changes, err := incompatible(m.path, filepath.Join(released, dir), filepath.Join(r.dir, dir))
		if err != nil {
			return fmt.Errorf("comparing %s with %s: %w", m.path, last, err)
		}
		unlisted := slices.DeleteFunc(slices.Clone(changes), func(change string) bool { return listed(change, entries) })
		for _, change := range unlisted {
			errs = append(errs, fmt.Errorf("%s: %s: CHANGELOG.md does not list it under Changed", m.path, change))
		}
		if _, err := fmt.Fprintf(out, "api: %s: incompatible changes since %s: %d, not in CHANGELOG.md: %d\n", m.path, last, len(changes), len(unlisted)); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// incompatible returns the changes that break users, such as "./memory.New: removed".
func incompatible(module, old, current string) (changes []string, err error) {
	if _, err := os.Stat(filepath.Join(current, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		return []string{"package " + module + ": removed"}, nil
	}
	tmp, err := os.MkdirTemp("", "delayq-api-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	before, after := filepath.Join(tmp, "before"), filepath.Join(tmp, "after")
	for file, dir := range map[string]string{before: old, after: current} {
		if _, err := command(dir, "go", "run", apidiff, "-m", "-w", file, module); err != nil {
			return nil, err
		}
	}
	found, err := command(tmp, "go", "run", apidiff, "-m", "-incompatible", before, after)
	for line := range strings.Lines(found) {
		if change, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			changes = append(changes, change)
		}
	}
	return changes, err
}

var (
	identifier = regexp.MustCompile(`[\pL_][\pL\pN_]*`)
	codeSpan   = regexp.MustCompile("`[^`]+`")
)

// listed reports whether one entry has all names of a change in code spans: of the package, unless
// it is the root, of the type and of the member.
func listed(change string, entries []string) bool {
	name := change
	if end := strings.IndexAny(change, ",:"); end >= 0 {
		name = change[:end]
	}
	name = path.Base(strings.TrimPrefix(name, "package "))
	return slices.ContainsFunc(entries, func(entry string) bool {
		words := identifier.FindAllString(strings.Join(codeSpan.FindAllString(entry, -1), " "), -1)
		for _, want := range identifier.FindAllString(name, -1) {
			if !slices.Contains(words, want) {
				return false
			}
		}
		return true
	})
}
