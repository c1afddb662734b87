package raw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A File is all that a report is made of: docs/benchmarks/raw.json.
type File struct {
	Machine Machine  `json:"machine"`
	Trial   bool     `json:"trial,omitempty"` // a short run that shows only that everything works
	Runs    []Run    `json:"runs"`
	Results []Result `json:"results"`
	Records []Record `json:"records"`
}

// A Machine is where it was measured.
type Machine struct {
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit"` // followed by "with changes" where the tree had some
	OS       string    `json:"os"`
	Kernel   string    `json:"kernel"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Memory   int64     `json:"memory"` // bytes
	Load     float64   `json:"load"`   // of the last minute before the first run
	Versions []Version `json:"versions"`
}

// A Version is the version of a program or a module in the run.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Run is one call of go test.
type Run struct {
	Dir     string   `json:"dir"`             // from the root of the repository
	Command string   `json:"command"`         // as one would type it in that directory
	Seconds float64  `json:"seconds"`         // with the compiler
	Again   *Machine `json:"again,omitempty"` // the machine at that time, where it was measured again after the rest
	Failed  bool     `json:"failed,omitempty"`
	Output  []string `json:"output"` // lines, which benchstat reads
}

// A Result is one line of a benchmark. Its name has no number of processors at the end.
type Result struct {
	Benchmark string             `json:"benchmark"`
	Metrics   map[string]float64 `json:"metrics"` // by unit, as the line has them
}

// Load reads a file.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading measurements: %w", err)
	}
	f := new(File)
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("reading measurements from %s: %w", path, err)
	}
	return f, nil
}

// Replace replaces a command's earlier results by new ones, at the same place of the file.
func (f *File) Replace(run Run, results []Result, records []Record) {
	at := slices.IndexFunc(f.Runs, func(r Run) bool { return r.Dir == run.Dir && r.Command == run.Command })
	if at < 0 {
		f.Runs = append(f.Runs, run)
	} else {
		f.Runs[at] = run
	}
	for _, r := range results {
		f.Results = slices.DeleteFunc(f.Results, func(old Result) bool { return old.Benchmark == r.Benchmark })
	}
	f.Results = append(f.Results, results...)
	f.Records = lastOfEach(append(f.Records, records...))
}

// Save writes a file, a result and a record a line.
func (f *File) Save(path string) error {
	text, err := f.encode()
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing measurements: %w", err)
	}
	return nil
}

func (f *File) encode() ([]byte, error) {
	few := *f
	few.Results, few.Records = nil, nil
	head, err := json.MarshalIndent(few, "", " ")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Write(head[:bytes.LastIndex(head, []byte(",\n \"results\""))])
	if err := writeList(&text, "results", f.Results); err != nil {
		return nil, err
	}
	if err := writeList(&text, "records", f.Records); err != nil {
		return nil, err
	}
	text.WriteString("\n}\n")
	return text.Bytes(), nil
}

func writeList[T any](text *bytes.Buffer, name string, all []T) error {
	fmt.Fprintf(text, ",\n %q: [", name)
	for i, one := range all {
		line, err := json.Marshal(one)
		if err != nil {
			return err
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString("\n  ")
		text.Write(line)
	}
	text.WriteString("\n ]")
	return nil
}

// Metric returns the value with that unit of a benchmark's last line.
func (f *File) Metric(benchmark, unit string) (value float64, ok bool) {
	for _, r := range f.Results {
		if v, has := r.Metrics[unit]; has && r.Benchmark == benchmark {
			value, ok = v, true
		}
	}
	return value, ok
}
