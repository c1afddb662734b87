package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const unreleased = "v0.0.0" // what modules require of the library before its first release

// A module is a go.mod, and the go.work beside it if there is one.
type module struct {
	dir             string // with slashes, relative to the root; "." is the library
	path, goVersion string
	requires        map[string]requirement // by path
	replaces        map[string]string      // directories by path, of go.mod
	work            map[string]string      // the same of go.work
}

type requirement struct {
	version  string
	indirect bool
}

// published reports whether others can use the module. The rest serves this repository alone.
func (m module) published() bool {
	return m.dir == "." || m.isCommand() || strings.HasPrefix(m.dir, "adapters/")
}

func (m module) isCommand() bool { return strings.HasPrefix(m.dir, "cmd/") }

func (m module) tag(version string) string { return path.Join(m.dir, version) }

func readModules(root string) (modules []module, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		m, err := readModule(root, filepath.Dir(name))
		modules = append(modules, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the modules: %w", err)
	}
	i := slices.IndexFunc(modules, func(m module) bool { return m.dir == "." })
	if i < 0 {
		return nil, fmt.Errorf("no go.mod in %s", root)
	}
	return slices.Concat(modules[i:i+1], modules[:i], modules[i+1:]), nil
}

// A replacement is one of go mod edit -json and of go work edit -json.
type replacement struct {
	Old struct{ Path string }
	New struct{ Path string }
}

func readModule(root, dir string) (module, error) {
	var mod struct {
		Module  struct{ Path string }
		Go      string
		Require []struct {
			Path, Version string
			Indirect      bool
		}
		Replace []replacement
	}
	if err := editJSON(&mod, "mod", filepath.Join(dir, "go.mod")); err != nil {
		return module{}, err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return module{}, err
	}
	m := module{
		dir: filepath.ToSlash(rel), path: mod.Module.Path, goVersion: mod.Go,
		requires: make(map[string]requirement), replaces: directories(mod.Replace),
	}
	for _, r := range mod.Require {
		m.requires[r.Path] = requirement{r.Version, r.Indirect}
	}
	var work struct{ Replace []replacement }
	workFile := filepath.Join(dir, "go.work")
	if _, err := os.Stat(workFile); errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	err = editJSON(&work, "work", workFile)
	m.work = directories(work.Replace)
	return m, err
}

func editJSON(v any, kind, file string) error {
	raw, err := command(filepath.Dir(file), "go", kind, "edit", "-json", filepath.Base(file))
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return json.Unmarshal([]byte(raw), v)
}

func directories(replace []replacement) map[string]string {
	dirs := make(map[string]string)
	for _, r := range replace {
		dirs[r.Old.Path] = r.New.Path
	}
	return dirs
}

func checkModules(modules []module) error {
	library := modules[0]
	_, err := libraryVersion(modules)
	errs := []error{err}
	for _, m := range modules[1:] {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s/go.mod: "+format, append([]any{m.dir}, args...)...))
		}
		if want := path.Join(library.path, m.dir); m.path != want {
			wrong("the module is %s, and its directory says %s", m.path, want)
		}
		if adapter := strings.HasPrefix(m.dir, "adapters/"); m.goVersion != library.goVersion && !adapter { // which follows the library that it adapts
			wrong("go is %s, and that of the library %s", m.goVersion, library.goVersion)
		}
		for name, r := range m.requires {
			if i := slices.IndexFunc(modules, func(other module) bool { return other.path == name }); i >= 0 {
				errs = append(errs, checkReplaced(m, modules[i]))
				if !m.published() && r.version != unreleased {
					wrong("it requires %s %s: write %s in a module that is not published", name, r.version, unreleased)
				}
				continue
			}
			if ours, ok := library.requires[name]; ok && !ours.indirect && !r.indirect && r.version != ours.version {
				wrong("it requires %s %s, and the library %s", name, r.version, ours.version)
			}
		}
	}
	return errors.Join(errs...)
}

// checkReplaced checks that m is built with the module that lies in this repository.
func checkReplaced(m, other module) error {
	where, replaces := "go.mod", m.replaces
	if m.isCommand() {
		where, replaces = "go.work", m.work
		if len(m.replaces) > 0 {
			return fmt.Errorf("%s/go.mod has a replacement, which go install rejects: move it to go.work", m.dir)
		}
	}
	want, err := filepath.Rel(filepath.FromSlash(m.dir), filepath.FromSlash(other.dir))
	if err != nil {
		return err
	}
	if got := replaces[other.path]; path.Clean(got) != filepath.ToSlash(want) {
		return fmt.Errorf("%s/%s: it replaces %s by %q; want %q", m.dir, where, other.path, got, want)
	}
	return nil
}

// libraryVersion returns the version of the library that all published modules require.
func libraryVersion(modules []module) (version string, err error) {
	library := modules[0].path
	for _, m := range modules[1:] {
		r, ok := m.requires[library]
		switch {
		case !m.published() || !ok:
		case version == "":
			version = r.version
		case r.version != version:
			return "", fmt.Errorf("%s/go.mod: it requires %s %s, and another published module %s", m.dir, library, r.version, version)
		}
	}
	if version == "" {
		version = unreleased
	}
	return version, nil
}
