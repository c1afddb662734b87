package check

import (
	"cmp"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// highest is the grade that no page exceeds: a text for readers of 14 or 15 years.
const highest = 9.0

var (
	gradeRoot = flag.String("grade.root", "../..", "the tree whose pages TestReadingGrade reads")
	gradePage = flag.String("grade.page", "", "a page whose hardest sentences TestReadingGrade prints")
)

// ungraded are pages that no person reads from the beginning to the end, each with its reason.
var ungraded = map[string]string{
	"CHANGELOG.md":  "lists of changes",
	"docs/peers.md": "written by bench/peers/verdict: mostly outputs of tests",
}

// longest is the number of words that no sentence exceeds.
const longest = 40

// generated are pages of which programs write some long sentences.
var generated = map[string]string{
	"docs/benchmarks.md":   "bench/report lists figures in sentences",
	"docs/command-line.md": "the help texts of cmd/delayq",
}

// TestReadingGrade keeps the prose of every page to sentences that a reader of English as a second
// language follows.
func TestReadingGrade(t *testing.T) {
	tree := os.DirFS(*gradeRoot)
	pages := 0
	err := fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" || ungraded[path] != "" {
			return nil
		}
		page, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		pages++
		r := read(string(page))
		t.Logf("%4.1f %5d words %s", r.grade(), r.words, path)
		for _, s := range prose(string(page)) {
			if n := len(spoken.FindAllString(s, -1)); n > longest && generated[path] == "" {
				t.Errorf("%s has a sentence of %d words, more than %d: %s", path, n, longest, s)
			}
		}
		if r.grade() > highest {
			t.Errorf("%s has grade %.1f, more than %.0f: go test -run TestReadingGrade -grade.page %s lists its hardest sentences", path, r.grade(), highest, path)
		}
		return nil
	})
	if err != nil || pages < 10 {
		t.Fatalf("%d pages: %v", pages, err)
	}
	if *gradePage != "" {
		printHardest(t, tree)
	}
}

func printHardest(t *testing.T, tree fs.FS) {
	t.Helper()
	page, err := fs.ReadFile(tree, *gradePage)
	if err != nil {
		t.Fatal(err)
	}
	alone := func(sentence string) (r reading) { r.add(sentence); return r }
	sentences := prose(string(page))
	slices.SortStableFunc(sentences, func(a, b string) int { return cmp.Compare(alone(b).grade(), alone(a).grade()) })
	for _, s := range sentences[:min(len(sentences), 40)] {
		t.Logf("%4.1f %s", alone(s).grade(), s)
	}
}

func TestSyllables(t *testing.T) {
	for word, want := range map[string]int{
		"a": 1, "due": 1, "queue": 1, "the": 1, "leased": 1, "store": 1, "stores": 1, "wait": 1, "2,000": 1, "times": 1,
		"message": 2, "messages": 3, "handler": 2, "worker": 2, "pushes": 2, "handle": 2, "handles": 2, "redis": 2, "server": 2, "attempted": 3, "release": 2,
		"delivery": 4, "acknowledge": 3, "library": 3, "idempotent": 4, "another": 3, "being": 2, "create": 2, "statement": 2,
		"configuration": 5, "guarantee": 3, "operation": 4, "idea": 3, "radio": 3,
	} {
		if n := syllables(word); n != want {
			t.Errorf("%q: %d syllables, want %d", word, n, want)
		}
	}
}

// The prose of a page is what a reader reads as sentences.
func TestProse(t *testing.T) {
	page := "# A heading. Two.\n\nOne `code.span(a, b)` here. A [link](a.md) goes\non! ![no](p.svg)\n\n" +
		"    code := 1. Not prose.\n\n| a table. | row |\n|---|---|\n\n- item one\n  goes on\n- item two. More\n\n```go\nx. y. z.\n```\n" +
		"<!-- no. -->\nVersion 3.12.5 is new: see https://example.com/x.y now?\n"
	want := []string{
		"One codename here", "A link goes on", "item one goes on", "item two", "More", "Version 3.12.5 is new: see codename now",
	}
	got := prose(page)
	if !slices.Equal(got, want) {
		t.Errorf("prose is\n%q, want\n%q", got, want)
	}
}

// The formula on a text whose counts are known: 11.8 and 0.39 by words, syllables and sentences.
func TestGrade(t *testing.T) {
	easy, hard := read("The cat sat on the mat. It was a big cat."), read(strings.Repeat("Asynchronous replication acknowledges operations ", 8)+".")
	if easy != (reading{sentences: 2, words: 11, syllables: 11}) || easy.grade() > 1 {
		t.Errorf("easy: %+v, grade %.1f", easy, easy.grade())
	}
	if hard.grade() <= highest {
		t.Errorf("a hard text has grade %.1f", hard.grade())
	}
}
