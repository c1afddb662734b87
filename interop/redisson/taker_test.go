package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// takerEnv makes the test binary a process of Go's that leases messages and holds them: URL, queue,
// format, lease in ns, how many.
const takerEnv = "DELAYQ_INTEROP_TAKER"

// hold is a taker's main. It prints each message and the end of its lease, and lives until its
// input ends.
func hold(spec string) error {
	var url, name string
	var format, n int
	var lease time.Duration
	if _, err := fmt.Sscan(spec, &url, &name, &format, &lease, &n); err != nil {
		return fmt.Errorf("reading %s: %w", takerEnv, err)
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	b := redisson.New(redis.NewClient(opt), redisson.Format(redisson.MemberFormat(format)))
	q, err := b.Open(ctx, name, backend.Options{Logger: silent})
	if err != nil {
		return err
	}
	for n > 0 {
		ds, err := q.Receive(ctx, n, lease)
		if err != nil {
			return err
		}
		for _, d := range ds {
			_, _ = fmt.Fprintln(os.Stdout, string(d.Body), d.Until.UnixMilli())
		}
		n -= len(ds)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// startTaker starts a process that leases n messages, and returns when each lease ends, by body,
// and the process.
func (b both) startTaker(n int, lease time.Duration) (map[string]time.Time, *testenv.Program) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d %d",
		takerEnv, b.server.URL(), b.java.Name(), formats[b.jvm.Version()], lease, n))
	p := got(testenv.StartProgram(cmd, filepath.Join(b.TempDir(), "taker.log")))(b.T)
	b.Cleanup(func() { must(b.T, p.Close()) })
	ends := map[string]time.Time{}
	for lines := bufio.NewScanner(p.Output()); len(ends) < n && lines.Scan(); {
		var body string
		var ms int64
		if _, err := fmt.Sscan(lines.Text(), &body, &ms); err != nil {
			b.Fatalf("the taker says %q", lines.Text())
		}
		ends[body] = time.UnixMilli(ms)
	}
	if len(ends) != n {
		b.Fatalf("the taker leased %d messages of %d and ended:\n%s", len(ends), n, p.Log())
	}
	return ends, p
}
