package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/golangci/misspell"
)

// TestSpelling finds common misspellings on the pages.
func TestSpelling(t *testing.T) {
	speller := misspell.New()
	speller.Compile()
	if _, wrong := speller.Replace("a recieved mesage"); len(wrong) == 0 {
		t.Fatal("the speller finds nothing")
	}
	pages, err := fs.Glob(os.DirFS("../.."), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := fs.Glob(os.DirFS("../.."), "docs/*.md")
	if err != nil || len(docs) < 10 {
		t.Fatalf("%d pages: %v", len(docs), err)
	}
	for _, path := range append(pages, docs...) {
		page, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := speller.Replace(string(page))
		for _, w := range wrong {
			t.Errorf("%s:%d: %q: write %q", path, w.Line, w.Original, w.Corrected)
		}
	}
}
