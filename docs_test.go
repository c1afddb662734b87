package delayq_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// files are the contents of the project's files whose names end so, by path.
func files(t *testing.T, ending string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == "target" || e.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil || len(found) < 5 {
		t.Fatalf("%d files of %s, %v", len(found), ending, err)
	}
	return found
}

var (
	indented   = regexp.MustCompile(`(?m)^ {4}.*$`)
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor  = regexp.MustCompile("[^a-z0-9 _-]")
	goProgram  = regexp.MustCompile("(?s)```go\n(package main\n.*?)```")
	goBlock    = regexp.MustCompile("(?s)```go\n(.*?)```")
	badge      = regexp.MustCompile(`badge/(go|license)-([^-)]+)-`)
	makeTarget = regexp.MustCompile(`(?m)(?:^ {4}|` + "`" + `)make ([a-z-]+)`)
	testName   = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*`)
	testFunc   = regexp.MustCompile(`(?m)^func (` + testName.String() + `)\(`)
	benchFlag  = regexp.MustCompile(`-bench[= ]'?([^\s'/]+)`) // up to the name of the entry below
)

// anchors are those that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		name := notAnchor.ReplaceAllString(strings.ToLower(h[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// Links within the project lead somewhere, to headings too.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := files(t, ".md")
	for path, text := range all {
		text = indented.ReplaceAllString(text, "") // code, where ](…) is no link
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
}

// Targets that the pages name exist.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	must(t, err)
	for path, text := range files(t, ".md") {
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s says make %s, which the Makefile does not know", path, m[1])
			}
		}
	}
}

// A nested module that no target of the Makefile enters is never tested.
func TestMakeEntersEveryModule(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	must(t, err)
	_, targets, _ := strings.Cut(string(makefile), "\ntest-all-modules:")
	targets, _, _ = strings.Cut(targets, "\n\n")
	for path := range files(t, "/go.mod") {
		if dir := filepath.ToSlash(filepath.Dir(path)); !strings.Contains(targets, "cd "+dir+" && ") {
			t.Errorf("make test-all does not enter the module %s", dir)
		}
	}
}

// tests are the names of all tests and benchmarks, of the nested modules too.
func tests(t *testing.T) (names []string) {
	t.Helper()
	for _, text := range files(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// Commands that the pages show, and tests that they name as proof, exist: go test finds nothing
// wrong with an unknown name.
func TestNamedTests(t *testing.T) {
	t.Parallel()
	all := tests(t)
	for path, text := range files(t, ".md") {
		for _, name := range testName.FindAllString(text, -1) {
			if !slices.ContainsFunc(all, func(one string) bool { return strings.HasPrefix(one, name) }) {
				t.Errorf("%s names %s, which there is not", path, name)
			}
		}
		for _, m := range benchFlag.FindAllStringSubmatch(text, -1) {
			named, err := regexp.Compile(m[1])
			if err != nil || !slices.ContainsFunc(all, func(one string) bool { return strings.HasPrefix(one, "Benchmark") && named.MatchString(one) }) {
				t.Errorf("%s says -bench %s, which no benchmark matches: %v", path, m[1], err)
			}
		}
	}
}

// buildTime bounds the build and the run of a program.
const buildTime = 20 * time.Minute

// The first command of the README does what the README says.
func TestMakeDemo(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "make", "demo").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("early 0 lost 0 duplicates 0")) {
		t.Errorf("%v: %s", err, out)
	}
}

// The whole programs on the pages are built and run, each in a module of its own as a new user
// would have, and end well.
func TestPrograms(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	programs := 0
	for path, text := range files(t, ".md") {
		for _, m := range goProgram.FindAllStringSubmatch(text, -1) {
			programs++
			patient := strings.Replace(m[1], ", 3*time.Second)", ", 20*time.Second)", 1) // where the machine stands still
			out := runProgram(t, patient)
			if path == "README.md" && strings.TrimSpace(out) != "order-18 was not paid: cancelling it" {
				t.Errorf("the README's program says %q", out)
			}
		}
	}
	if programs == 0 {
		t.Error("no page has a program")
	}
}

// Other blocks of Go on the pages are cut out of files that are compiled and tested.
func TestBlocksAreTestedCode(t *testing.T) {
	t.Parallel()
	var code []string
	for _, text := range files(t, ".go") {
		code = append(code, unindented(text))
	}
	for path, text := range files(t, ".md") {
		for _, m := range goBlock.FindAllStringSubmatch(text, -1) {
			block := unindented(m[1])
			if !strings.HasPrefix(block, "package main\n") && !slices.ContainsFunc(code, func(file string) bool { return strings.Contains(file, block) }) {
				t.Errorf("%s has a block that stands in no Go file:\n%s", path, m[1])
			}
		}
	}
}

// unindented is a text whose lines begin with their first letter.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// The README is read in a minute, and its badges are true.
func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	must(t, err)
	if n := bytes.Count(page, []byte("\n")); n > 150 {
		t.Errorf("the README has %d lines, more than 150", n)
	}
	first := strings.Join(strings.Split(string(page), "\n")[:75], "\n") // a screen and a half
	for _, question := range []string{"Can I cancel a message?", "What if my worker dies?", "Which store, and why?"} {
		if !strings.Contains(first, question) {
			t.Errorf("the first 75 lines of the README do not ask %q", question)
		}
	}
	mod, err := os.ReadFile("go.mod")
	must(t, err)
	license, err := os.ReadFile("LICENSE")
	must(t, err)
	proof := map[string]string{"go": string(mod), "license": string(license)}
	badges := badge.FindAllStringSubmatch(string(page), -1)
	for _, m := range badges {
		if says := strings.TrimSuffix(m[2], "%2B"); !strings.Contains(proof[m[1]], says) {
			t.Errorf("the badge %s says %s, which is not so", m[1], says)
		}
	}
	if len(badges) != 2 {
		t.Errorf("the README has the badges %q", badges)
	}
}

func runProgram(t *testing.T, source string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	must(t, err)
	sums, err := os.ReadFile("go.sum")
	must(t, err)
	dir := t.TempDir()
	mod := "module program\n\ngo 1.25.0\n\nrequire github.com/delayq/delayq v0.0.0\n\nreplace github.com/delayq/delayq => " + root + "\n"
	for name, text := range map[string]string{"main.go": source, "go.mod": mod, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	return out.String()
}
