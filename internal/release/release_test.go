package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

func TestThisRepository(t *testing.T) {
	t.Parallel()
	if _, err := check("../.."); err != nil {
		t.Error(err)
	}
}

type files map[string]string

// sound is a repository with a library, a command, an adapter and a module of tests.
var sound = files{
	"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- `F`.\n",
	"go.mod":       "module example.org/m\n\ngo 1.25.0\n\nrequire example.org/x v1.2.0\n",
	"m.go":         "package m\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (T) Close() {}\n",

	"cmd/m/go.mod":  "module example.org/m/cmd/m\n\ngo 1.25.0\n\nrequire example.org/m v0.0.0\n",
	"cmd/m/go.work": "go 1.25.0\n\nuse .\n\nreplace example.org/m => ../..\n",
	"cmd/m/main.go": "package main\n\nfunc main() {}\n",

	"adapters/a/go.mod": "module example.org/m/adapters/a\n\ngo 1.25.0\n\nreplace example.org/m => ../..\n\nrequire (\n\texample.org/m v0.0.0\n\texample.org/x v1.2.0\n)\n",
	"adapters/a/a.go":   "package a\n\nfunc G() {}\n",
	"chaos/go.mod":      "module example.org/m/chaos\n\ngo 1.25.0\n\nreplace example.org/m => ../\n\nrequire example.org/m v0.0.0\n",
	"testdata/go.mod":   "module example.org/elsewhere\n\ngo 1.20\n",
}

// with returns the files with old text replaced in one of them.
func (f files) with(name, old, text string) files {
	f = maps.Clone(f)
	f[name] = strings.Replace(f[name], old, text, 1)
	return f
}

func (f files) write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range f {
		name = filepath.Join(dir, name)
		mustDo(t, os.MkdirAll(filepath.Dir(name), 0o755))
		mustDo(t, os.WriteFile(name, []byte(content), 0o644))
	}
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError takes an empty text for no error.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("got the error %v, want %q", err, text)
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files files
		want  string
	}{
		"in step":               {sound, ""},
		"another path":          {sound.with("chaos/go.mod", "m/chaos", "m/faults"), "chaos/go.mod: the module is example.org/m/faults"},
		"another go":            {sound.with("chaos/go.mod", "1.25.0", "1.26.0"), "chaos/go.mod: go is 1.26.0"},
		"no replacement":        {sound.with("adapters/a/go.mod", "replace example.org/m => ../..", ""), `adapters/a/go.mod: it replaces example.org/m by ""`},
		"another directory":     {sound.with("chaos/go.mod", "../", "../../m"), `by "../../m"; want ".."`},
		"a command's go.mod":    {sound.with("cmd/m/go.mod", "require", "replace example.org/m => ../..\n\nrequire"), "which go install rejects"},
		"a command's go.work":   {sound.with("cmd/m/go.work", "../..", ".."), "cmd/m/go.work: it replaces example.org/m"},
		"versions of ours":      {sound.with("cmd/m/go.mod", "v0.0.0", "v0.1.0"), "another published module"},
		"a version for tests":   {sound.with("chaos/go.mod", "v0.0.0", "v0.1.0"), "write v0.0.0 in a module that is not published"},
		"versions of others":    {sound.with("adapters/a/go.mod", "x v1.2.0", "x v1.3.0"), "it requires example.org/x v1.3.0, and the library v1.2.0"},
		"a changelog's section": {sound.with("CHANGELOG.md", "### Added", "### New"), "New: allowed is Added"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.files.write(t, dir)
			_, err := check(dir)
			wantError(t, err, test.want)
		})
	}
}

func TestChangelog(t *testing.T) {
	t.Parallel()
	const part = "### Fixed\n\n- A bug.\n\n"
	for text, want := range map[string]string{
		"# Changelog\n": "the first section must be [Unreleased]",
		"## [Unreleased]\n\n## [0.2.0] - 2030-01-31\n\n" + part + "## [0.1.0] - 2030-01-01\n\n" + part: "",
		"## [Unreleased]\n\n## [0.1.0] - 2030-01-31\n\n" + part + "## [0.2.0] - 2030-01-01\n\n" + part: "[0.2.0] - 2030-01-01: the newest release must come first",
		"## [Unreleased]\n\n## 0.1.0\n\n" + part:                                                       "must have the form",
		"## [Unreleased]\n\n## [0.1.0] - 2030-01-31\n":                                                 "it is empty",
		"## [Unreleased]\n\n" + part + part:                                                            "Fixed appears twice",
		"## [Unreleased]\n\n### Fixed\n\n### Added\n\n- `F`.":                                          "Fixed has no entries",
	} {
		wantError(t, parseChangelog(text).check(), want)
	}
}

// A history is a git repository.
type history struct{ dir string }

func newHistory(t *testing.T, f files) history {
	t.Helper()
	h := history{t.TempDir()}
	h.git(t, "init", "--quiet")
	h.commit(t, f)
	return h
}

func (h history) git(t *testing.T, args ...string) {
	t.Helper()
	_, err := command(h.dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false"}, args...)...)
	mustDo(t, err)
}

func (h history) commit(t *testing.T, f files) {
	t.Helper()
	f.write(t, h.dir)
	h.git(t, "add", ".")
	h.git(t, "commit", "--quiet", "--message", "x")
}

func (h history) wantRun(t *testing.T, wantOut, wantErr string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	wantError(t, run(h.dir, args, &out), wantErr)
	if out.String() != wantOut {
		t.Errorf("%q printed %q, want %q", args, &out, wantOut)
	}
}

func TestTagsOfARelease(t *testing.T) {
	t.Parallel()
	h := newHistory(t, sound)
	h.wantRun(t, "", "must be in a section [0.1.0]", "tags", "v0.1.0")
	h.wantRun(t, "", "want one such as v0.2.0", "tags", "0.1")

	ready := sound.with("CHANGELOG.md", "### Added", "## [0.1.0] - 2030-01-31\n\n### Added")
	h.commit(t, ready)
	h.wantRun(t, "v0.1.0\n", "", "tags", "v0.1.0")
	h.git(t, "tag", "v0.1.0")
	h.wantRun(t, "", "let the published modules require example.org/m v0.1.0", "tags", "v0.1.0")

	ready = ready.with("cmd/m/go.mod", "v0.0.0", "v0.1.0").with("adapters/a/go.mod", "v0.0.0", "v0.1.0")
	h.commit(t, ready)
	h.wantRun(t, "adapters/a/v0.1.0\ncmd/m/v0.1.0\n", "", "tags", "v0.1.0")

	h.git(t, "tag", "v0.10.0")
	h.commit(t, ready.with("CHANGELOG.md", "[0.1.0]", "[0.9.0]"))
	h.wantRun(t, "", "v0.9.0 is not after v0.10.0", "tags", "v0.9.0")
}

func TestAPI(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All) // it fetches apidiff
	library := sound.with("go.mod", "require example.org/x v1.2.0\n", "").with("adapters/a/go.mod", "\texample.org/x v1.2.0\n", "")
	h := newHistory(t, library)
	h.wantRun(t, "api: nothing was compared: there is no release yet\n", "", "api")
	h.git(t, "tag", "v0.1.0")

	changed := library.with("m.go", "F()", "F(int)").with("m.go", "func (T) Close() {}", "")
	h.commit(t, changed)
	const found = "api: example.org/m: incompatible changes since v0.1.0: 2, not in CHANGELOG.md: "
	const adapter = "api: example.org/m/adapters/a: incompatible changes since v0.1.0: 0, not in CHANGELOG.md: 0\n"
	h.wantRun(t, found+"2\n"+adapter, "F: changed from func() to func(int): CHANGELOG.md does not list it", "api")

	changed = changed.with("CHANGELOG.md", "### Added", "### Changed\n\n- `F` takes a number.\n\n### Added")
	h.commit(t, changed)
	h.wantRun(t, found+"1\n"+adapter, "T.Close: removed: CHANGELOG.md does not list it", "api")

	changed = changed.with("CHANGELOG.md", "### Added", "- `T.Close` is gone.\n\n### Added")
	h.commit(t, changed)
	h.wantRun(t, found+"0\n"+adapter, "", "api")

	mustDo(t, os.RemoveAll(filepath.Join(h.dir, "adapters")))
	h.wantRun(t, found+"0\napi: example.org/m/adapters/a: incompatible changes since v0.1.0: 1, not in CHANGELOG.md: 1\n",
		"package example.org/m/adapters/a: removed", "api")
}

// A clone without tags is not taken for a project without releases.
func TestAPIWithoutTheTag(t *testing.T) {
	t.Parallel()
	h := newHistory(t, sound.with("cmd/m/go.mod", "v0.0.0", "v0.1.0").with("adapters/a/go.mod", "v0.0.0", "v0.1.0"))
	h.wantRun(t, "", "modules require v0.1.0, and no such tag is here", "api")
}

func TestListed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		change, entry string
		want          bool
	}{
		{"F: removed", "`F` is gone.", true},
		{"F: removed", "F is gone.", false},
		{"F: removed", "`Format` is gone.", false},
		{"(*T).M: removed", "`T.M` is gone.", true},
		{"(*T).M: removed", "`M` is gone.", false},
		{"(*T).M, method set of T: removed", "`T.M` is gone.", true},
		{"./a/sub.F: removed", "`sub.F` is gone.", true},
		{"./a/sub.F: removed", "`F` is gone.", false},
		{"package example.org/m/sub: removed", "`sub` is gone.", true},
	} {
		if got := listed(test.change, []string{"Other.", test.entry}); got != test.want {
			t.Errorf("%q listed in %q: got %v, want %v", test.change, test.entry, got, test.want)
		}
	}
	if listed("./a.F: removed", []string{"`a`", "`F`"}) {
		t.Error("two entries together list a change")
	}
}
