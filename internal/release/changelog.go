package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A changelog is CHANGELOG.md, in the form of Keep a Changelog. The first section is Unreleased.
type changelog []section

type section struct {
	version version // nil under Unreleased
	title   string
	parts   map[string][]string // entries by headings such as Changed
	errs    []error
}

var (
	sectionTitle = regexp.MustCompile(`^\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$`)
	partTitles   = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
)

func readChangelog(dir string) (changelog, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	return parseChangelog(string(raw)), nil
}

func parseChangelog(text string) (c changelog) {
	for _, text := range strings.Split("\n"+text, "\n## ")[1:] {
		title, body, _ := strings.Cut(text, "\n")
		s := section{title: title, parts: make(map[string][]string)}
		if m := sectionTitle.FindStringSubmatch(title); m != nil {
			s.version = parseVersion("v" + m[1])
		}
		for _, text := range strings.Split("\n"+body, "\n### ")[1:] {
			title, body, _ := strings.Cut(text, "\n")
			if s.parts[title] != nil {
				s.errs = append(s.errs, fmt.Errorf("%s appears twice", title))
			}
			if !slices.Contains(partTitles, title) {
				s.errs = append(s.errs, fmt.Errorf("%s: allowed is %s", title, strings.Join(partTitles, ", ")))
			}
			s.parts[title] = strings.Split("\n"+body, "\n- ")[1:]
			if len(s.parts[title]) == 0 {
				s.errs = append(s.errs, fmt.Errorf("%s has no entries", title))
			}
		}
		c = append(c, s)
	}
	return c
}

func (c changelog) check() error {
	if len(c) == 0 || c[0].title != "[Unreleased]" {
		return errors.New("CHANGELOG.md: the first section must be [Unreleased]")
	}
	var errs []error
	for i, s := range c {
		switch {
		case i > 0 && s.version == nil:
			s.errs = append(s.errs, errors.New("the title must have the form [1.2.3] - 2030-01-31"))
		case i > 0 && len(s.parts) == 0:
			s.errs = append(s.errs, errors.New("it is empty"))
		case i > 1 && !c[i-1].version.after(s.version):
			s.errs = append(s.errs, errors.New("the newest release must come first"))
		}
		for _, err := range s.errs {
			errs = append(errs, fmt.Errorf("CHANGELOG.md, %s: %w", s.title, err))
		}
	}
	return errors.Join(errs...)
}

// changedSince returns the entries under Changed that no release up to v has.
func (c changelog) changedSince(v version) (entries []string) {
	for _, s := range c {
		if s.version == nil || s.version.after(v) {
			entries = append(entries, s.parts["Changed"]...)
		}
	}
	return entries
}
