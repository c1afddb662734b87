package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/bench/internal/raw"
)

// describe describes the machine. Facts that cannot be found out are empty.
func describe(ctx context.Context, root string) raw.Machine {
	return raw.Machine{
		Date:     time.Now().UTC().Truncate(time.Second),
		Commit:   commit(ctx, root),
		OS:       runtime.GOOS + "/" + runtime.GOARCH,
		Kernel:   firstLine(read("/proc/sys/kernel/osrelease")),
		CPU:      field(read("/proc/cpuinfo"), "model name"),
		Cores:    runtime.NumCPU(),
		Memory:   kibibytes(field(read("/proc/meminfo"), "MemTotal")),
		Load:     load(),
		Versions: append([]raw.Version{{Name: "go", Version: strings.TrimPrefix(runtime.Version(), "go")}}, programs(ctx)...),
	}
}

func commit(ctx context.Context, root string) string {
	hash := say(ctx, "git", "-C", root, "rev-parse", "HEAD")
	if hash != "" && say(ctx, "git", "-C", root, "status", "--porcelain") != "" {
		hash += " with changes"
	}
	return hash
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+`)

// programs are those whose versions the benchmarks do not print.
func programs(ctx context.Context) (found []raw.Version) {
	for _, p := range []struct{ name, program, flag string }{
		{"redis", "redis-server", "--version"}, {"java", "java", "-version"}, {"beanstalkd", "beanstalkd", "-v"},
	} {
		if v := versionNumber.FindString(say(ctx, find(p.program), p.flag)); v != "" {
			found = append(found, raw.Version{Name: p.name, Version: v})
		}
	}
	if v := rabbitVersion(); v != "" {
		found = append(found, raw.Version{Name: "rabbitmq", Version: v})
	}
	return found
}

// find also searches the directories where Debian installs servers.
func find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	return filepath.Join("/usr/sbin", program)
}

// rabbitVersion reads the names of directories, for to ask the broker takes a broker.
func rabbitVersion() string {
	for _, pattern := range []string{"/usr/lib/rabbitmq/lib/rabbitmq_server-*", "/opt/rabbitmq/plugins/rabbit-[0-9]*"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return versionNumber.FindString(filepath.Base(found[len(found)-1]))
		}
	}
	return ""
}

func say(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// field is the value of the first line that begins with a name.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kibibytes(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return n << 10
}

func load() (oneMinute float64) {
	_, _ = fmt.Sscan(read("/proc/loadavg"), &oneMinute)
	return oneMinute
}
