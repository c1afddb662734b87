package interop

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sourceRoot finds the directory of pom.xml from wherever in the module the tests run.
func sourceRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the Java program: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		root := filepath.Join(at, "interop", "redisson")
		if _, err := os.Stat(filepath.Join(root, "pom.xml")); err == nil {
			return root, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New("looking for the Java program: no interop/redisson/pom.xml above " + dir)
		}
	}
}

// fingerprint changes with the sources, whatever their times say.
func fingerprint(root string) (string, error) {
	hash := sha256.New()
	files := []string{filepath.Join(root, "pom.xml")}
	err := filepath.WalkDir(filepath.Join(root, "src"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	for _, file := range files {
		err = errors.Join(err, addFile(hash, file))
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

func addFile(w io.Writer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s %d %s", filepath.Base(path), len(text), text)
	return err
}
