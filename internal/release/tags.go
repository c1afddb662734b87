package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// printTags prints the tags that the last commit is to have. The library comes first: other
// modules cannot require a version that has no tag.
func printTags(dir, name string, out io.Writer) error {
	next := parseVersion(name)
	if next == nil {
		return fmt.Errorf("version %q: want one such as v0.2.0", name)
	}
	repo, err := check(dir)
	if err != nil {
		return err
	}
	if unlisted, newest := repo.changes[0], repo.changes[min(1, len(repo.changes)-1)]; len(unlisted.parts) > 0 || !slices.Equal(newest.version, next) {
		return fmt.Errorf("CHANGELOG.md: the entries of [Unreleased] must be in a section [%s] below it", strings.TrimPrefix(name, "v"))
	}
	last, err := lastRelease(dir)
	if err != nil {
		return err
	}
	required, err := libraryVersion(repo.modules)
	if err != nil {
		return err
	}
	switch {
	case last == nil || next.after(last):
		_, err := fmt.Fprintf(out, "%s\n", name)
		return err
	case !slices.Equal(next, last):
		return fmt.Errorf("%s is not after %s, the last release", name, last)
	case required != name:
		return fmt.Errorf("%s is tagged; now let the published modules require %s %[1]s, and commit that", name, repo.modules[0].path)
	}
	for _, m := range repo.modules[1:] {
		if m.published() {
			if _, err := fmt.Fprintf(out, "%s\n", m.tag(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastRelease returns the newest version that is tagged before the last commit or at it.
func lastRelease(dir string) (last version, err error) {
	tags, err := command(dir, "git", "tag", "--list", "v*", "--merged", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("listing the tags: %w", err)
	}
	for _, tag := range strings.Fields(tags) {
		if v := parseVersion(tag); v.after(last) {
			last = v
		}
	}
	return last, nil
}
