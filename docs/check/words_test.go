package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allowed are words that must stay in a file, each for its reason.
var allowed = map[string][]string{
	// The names of keys in Redis: with others, stored dead letters would be lost.
	"internal/redis/store/keys.go":           {"graves"},
	"internal/redis/store/keys_test.go":      {"graves"},
	"internal/redis/store/large_test.go":     {"graves"},
	"internal/redis/store/stop_test.go":      {"graves"},
	"internal/redis/store/retention_test.go": {"graves"},
	"redisson/store.go":                      {"graves"},
	"redisson/types_test.go":                 {"graves"},
	"redisson/stop_test.go":                  {"graves"},
	"redisson/unreadable_test.go":            {"graves"},
	"docs/redis.md":                          {"graves"},
	"docs/redisson.md":                       {"graves"},
	// beanstalkd calls a dead letter buried.
	"docs/peers.md":                             {"bury", "buried"},
	"bench/peers/beanstalkd_test.go":            {"buried"},
	"bench/peers/verdict/adapter_beanstalkd.go": {"bury", "buried"},
	"bench/peers/verdict/peers_test.go":         {"bury", "buried"},
}

// word is a word of a text, or a part of an identifier in mixed caps.
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// TestNoWordsOfOurOwn keeps code and documentation to the field's words.
func TestNoWordsOfOurOwn(t *testing.T) {
	instead, used := bannedWords(t), make(map[string]bool)
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !hasOurWords(path) {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, w := range word.FindAllString(line, -1) {
				w = strings.ToLower(w)
				if better, banned := instead[w]; !banned {
					continue
				} else if slices.Contains(allowed[path], w) {
					used[path+" "+w] = true
				} else {
					t.Errorf("%s:%d: %q is a word of our own; write: %s", path, i+1, w, better)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, words := range allowed {
		for _, w := range words {
			if !used[path+" "+w] {
				t.Errorf("%s does not have the word %q: take it off the list of allowed ones", path, w)
			}
		}
	}
}

// hasOurWords reports whether a file's words count. The changelog tells of former names, and this
// file lists words.
func hasOurWords(path string) bool {
	switch filepath.Ext(path) {
	case ".go":
		return path != "docs/check/words_test.go"
	case ".java", ".sh":
		return true
	case ".md":
		return path != "CHANGELOG.md"
	}
	return false
}

func bannedWords(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("words.txt")
	if err != nil {
		t.Fatal(err)
	}
	instead := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		w, better, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			t.Fatalf("words.txt: expected a word, a tab and the better words in %q", line)
		}
		instead[w] = better
	}
	if len(instead) < 20 {
		t.Fatalf("words.txt has only %d words", len(instead))
	}
	return instead
}
