package raw

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Read returns the records of all files in a directory, sorted by nothing but the names of the
// files. Of records under one name, side and kind only the last is returned.
func Read(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("listing raw data: %w", err)
	}
	var all []Record
	for _, path := range files {
		found, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading raw data from %s: %w", path, err)
		}
		all = append(all, found...)
	}
	return lastOfEach(all), nil
}

func readFile(path string) (all []Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for lines := json.NewDecoder(bufio.NewReader(f)); ; {
		var r Record
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
}

func lastOfEach(all []Record) (last []Record) {
	type key struct {
		benchmark, side string
		lateness        bool
	}
	place := make(map[key]int)
	for _, r := range all {
		k := key{r.Benchmark, r.Side, r.Lateness != nil}
		if i, again := place[k]; again {
			last[i] = r
			continue
		}
		place[k] = len(last)
		last = append(last, r)
	}
	return last
}
