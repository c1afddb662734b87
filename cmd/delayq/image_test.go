package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

// lastStage is what the image has: its lines after the last FROM.
func lastStage(t *testing.T) (stage, all string) {
	t.Helper()
	raw, err := os.ReadFile("../../Dockerfile")
	mustDo(t, err)
	all = string(raw)
	return all[strings.LastIndex(all, "\nFROM "):], all
}

// The build command of the Dockerfile makes a program that needs no libraries, as an image
// without any must have.
func TestImageBuilds(t *testing.T) {
	t.Parallel()
	testenv.In(t, testenv.All)
	_, all := lastStage(t)
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 .* build .*)$`).FindStringSubmatch(all)
	if build == nil {
		t.Fatal("the Dockerfile builds no static program")
	}
	program := filepath.Join(t.TempDir(), "delayq")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(build[1], "/out/delayq", program, 1))
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", build[1], err, out)
	}

	if file, err := elf.Open(program); err == nil { // elsewhere than on Linux it is no ELF file
		defer func() { _ = file.Close() }()
		if libraries, err := file.ImportedLibraries(); err != nil || len(libraries) > 0 || file.Section(".interp") != nil {
			t.Errorf("it is linked with %q (%v)", libraries, err)
		}
	}
	cmd = exec.CommandContext(t.Context(), program, "--help")
	cmd.Env = []string{} // as in an image from scratch
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "doctor") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	stage, all := lastStage(t)
	for _, want := range []string{"\nFROM scratch\n", "\nCOPY --from=build /etc/ssl/certs/ca-certificates.crt ", "\nENTRYPOINT [", "\nCOPY --from=build --chown=65532:65532 /out/data /data\nWORKDIR /data\nUSER 65532:65532\n"} {
		if !strings.Contains(stage, want) {
			t.Errorf("the image lacks %q:%s", want, stage)
		}
	}
	if user := regexp.MustCompile(`\nUSER ([0-9]+)`).FindStringSubmatch(stage); user == nil || user[1] == "0" {
		t.Errorf("the image runs as root, or as a user whom Kubernetes cannot tell from root: %q", user)
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(all, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
				t.Errorf("the Dockerfile copies %s: %v", name, err)
			}
		}
	}
}
