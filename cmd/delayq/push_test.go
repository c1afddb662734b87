package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
	"github.com/delayq/delayq/internal/testenv"
)

// redisURL names a queue of its own on a server that all tests share.
func redisURL(t *testing.T, scheme string) string {
	t.Helper()
	return scheme + strings.TrimPrefix(testenv.SharedRedis(t).URL(), "redis") + "/" + rand.Text()
}

func openQueue(t *testing.T, url string) delayq.Queue {
	t.Helper()
	q, err := delayq.Open(t.Context(), url)
	mustDo(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// waiting lists the scheduled messages, as the command shows them.
func waiting(t *testing.T, url string) []messageJSON {
	t.Helper()
	r := runOK(t, "peek", url, "--json", "--limit=100000")
	return decodeLines[messageJSON](t, r.stdout)
}

// UnmarshalJSON reads a body as "delayq push" does.
func (b *bodyJSON) UnmarshalJSON(text []byte) error {
	var m jsonl.Message
	err := m.Read(slices.Concat([]byte(`{"body":`), text, []byte("}")))
	*b = bodyJSON(m.Body)
	return err
}

func decodeLines[T any](t *testing.T, text string) (all []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		var one T
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, one)
	}
	return all
}

func TestPushOne(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	r := runOK(t, "push", url, "hello", "--at=2100-01-31T18:00:00Z", "--header", "a=b=c;d", "--header=e=", "--type=invoice")
	r.wantSaid(t, "gone when it ends")
	id := strings.TrimSuffix(r.stdout, "\n")
	all := waiting(t, url)
	if len(all) != 1 || all[0].ID != id || *all[0].Body != "hello" || *all[0].Attempts != 0 || all[0].Due.Year() != 2100 {
		t.Fatalf("got %+v, want message %s", all, id)
	}
	if h := all[0].Headers; len(h) != 3 || h["a"] != "b=c;d" || h["e"] != "" || h["type"] != "invoice" {
		t.Errorf("got the headers %q", h)
	}
	r = runOK(t, "push", url, "", "--id=mine", "--after=1h", "--json")
	if r.stdout != "{\"line\":1,\"id\":\"mine\"}\n" {
		t.Errorf("got %q", r.stdout)
	}
	r = delayqRun(t, "push", url, "again", "--id=mine")
	r.wantCode(t, exitPartly)
	r.wantSaid(t, `message "mine": this id is taken: its message is scheduled`)
	if all := waiting(t, url); len(all) != 2 || all[0].ID != "mine" || *all[0].Body != "" || time.Until(*all[0].Due) < 59*time.Minute {
		t.Errorf("got %+v", all)
	}
}

const pushLinesInput = `{"id":"one","body":"text","after":"1h"}

{"id":"two","body":{"n": 1.50},"due":"2101-01-01T00:00:00Z","headers":{"k":"v"},"type":"t"}
{"id":"three","body_base64":"/wA=","headers_base64":{"raw":"/w=="},"after":"3h"}
{"id":"one"}
nonsense
{"body":"x","body_base64":"eA=="}
{"after":"3 minutes"}
{"after":"-1s"}
{"id":"a","delay":"1s"}
{"id":"a","id":"b"}
{"headers":{"delayq-x":"1"}}
{"headers":{"k":1}}
{"headers":{"type":"a"},"type":"b"}
{"id":"","due":"2101-01-01T00:00:00Z"}
{"due":"soon"}
[1]
{"body":"half \ud83d a character"}
{"headers":{"\udc00\ud800":"v"},"body_base64":"eA=="}
{"attempt":3,"attempts":2,"reason":"r","died":"2020-01-01T00:00:00Z","id":"last"}
`

func TestPushLines(t *testing.T) {
	t.Parallel()
	for _, url := range []string{newURL("memory"), redisURL(t, "zsetpoll"), redisURL(t, "redisson") + "?codec=envelope"} {
		r := runIn(t.Context(), strings.NewReader(pushLinesInput), "push", url, "--json", "--after=2h", "--header=h=default", "--header=k=default")
		r.wantCode(t, exitPartly)
		var ids []string
		refused := make(map[int]string)
		for _, o := range decodeLines[pushedJSON](t, r.stdout) {
			if o.Error != "" {
				refused[o.Line] = o.Error
				continue
			}
			ids = append(ids, o.ID)
		}
		if got := strings.Join(ids, " "); got != "one two three last" {
			t.Errorf("pushed: %s", got)
		}
		for number, want := range map[int]string{
			5: "this id is taken: its message is scheduled", 6: "not JSON: ", 7: `"body" and "body_base64" differ: allowed is one of them`,
			8: `after "3 minutes": allowed is`, 9: "invalid delay -1s: allowed is", 10: `field "delay": allowed are id,`,
			11: `field "id" twice`, 12: `invalid header key "delayq-x": allowed is`, 13: `headers: header "k" is 1: allowed is a string`,
			14: `header "type" twice`, 15: `id "": allowed is`, 16: `due "soon": allowed is`, 17: "[1]: allowed is a JSON object",
			18: `field "body": half a character, \ud83d: allowed is Unicode text; bytes that are none go in "body_base64" and "headers_base64"`,
			19: `headers: field "\udc00\ud800": half a character, \udc00: allowed is`,
		} {
			if !strings.Contains(refused[number], want) {
				t.Errorf("line %d: got %q, want %q", number, refused[number], want)
			}
			if !strings.Contains(r.stderr, fmt.Sprintf("delayq: stdin:%d: ", number)) {
				t.Errorf("line %d is not named: %s", number, r.stderr)
			}
		}
		if len(refused) != 15 || !strings.HasSuffix(r.stderr, "delayq: 15 of 19 lines: not done\n") {
			t.Errorf("refused %d: %s", len(refused), r.stderr)
		}
		wantPushedLines(t, waiting(t, url))
	}
}

func wantPushedLines(t *testing.T, all []messageJSON) {
	t.Helper()
	if len(all) != 4 {
		t.Fatalf("got %d messages: %+v", len(all), all)
	}
	one, last, three, two := all[0], all[1], all[2], all[3] // by due time
	if one.ID != "one" || *one.Body != "text" || one.Headers["k"] != "default" || one.Headers["h"] != "default" {
		t.Errorf("got %+v", one)
	}
	if last.ID != "last" || *last.Body != "" || *last.Attempts != 0 {
		t.Errorf("got %+v", last)
	}
	if three.ID != "three" || string(three.BodyBase64) != "\xff\x00" || three.Body != nil || string(three.HeadersBase64["raw"]) != "\xff" {
		t.Errorf("got %+v", three)
	}
	if two.ID != "two" || *two.Body != `{"n": 1.50}` || two.Headers["k"] != "v" || two.Headers["type"] != "t" || two.Due.Year() != 2101 {
		t.Errorf("got %+v", two)
	}
}

func TestPushManyLines(t *testing.T) {
	t.Parallel()
	const n = 5000
	var input strings.Builder
	for i := range n {
		fmt.Fprintf(&input, "{\"id\":\"m%d\",\"body\":%d,\"after\":\"1h\"}\n", i, i)
	}
	url := redisURL(t, "zsetpoll")
	r := runIn(t.Context(), strings.NewReader(input.String()), "push", url, "-")
	r.wantCode(t, exitOK)
	ids := strings.Fields(r.stdout)
	if len(ids) != n || ids[0] != "m0" || ids[n-1] != fmt.Sprintf("m%d", n-1) || r.stderr != "" {
		t.Fatalf("got %d ids; %s", len(ids), r.stderr)
	}
	r = runIn(t.Context(), strings.NewReader(input.String()), "push", url, "-")
	r.wantCode(t, exitPartly)
	if strings.Count(r.stderr, "\n") != mostComplaints+2 || !strings.Contains(r.stderr, "delayq: 5000 of 5000 lines: not done") {
		t.Errorf("got %s", r.stderr)
	}
}

// A pusher that waits for more lines has pushed those that came.
func TestPushDoesNotWaitForTheEnd(t *testing.T) {
	t.Parallel()
	in, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	out := &tripwire{word: "early", pull: cancel}
	ended := make(chan int, 1)
	var said bytes.Buffer
	go func() { ended <- run(ctx, []string{"push", newURL("memory"), "-"}, in, out, &said) }()
	_, err := io.WriteString(writer, "{\"id\":\"early\"}\n")
	mustDo(t, err)
	if code := <-ended; code != exitInterrupted || !strings.Contains(said.String(), "delayq: stopped after stdin:1\n") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	_ = writer.Close()
}

// Where standard input fails, the lines before are pushed. Standard error says from where to go on.
func TestPushWhoseInputFails(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]struct {
		code, pushed int
		said         string
	}{
		"{}\n\n{}\nbad\n{}\nhalf a li": {exitPartly, 3, "delayq: stopped after stdin:5\ndelayq: reading the rest of standard input: input/output error: not done\n"},
		"bad\n":                        {exitPartly, 0, "delayq: stopped after stdin:1\n"},
		"\nhalf a li":                  {exitUnusable, 0, "delayq: reading standard input: input/output error\n"},
	} {
		url := newURL("memory")
		q := openQueue(t, url)
		r := runIn(t.Context(), io.MultiReader(strings.NewReader(input), iotest.ErrReader(syscall.EIO)), "push", url)
		r.wantCode(t, want.code)
		r.wantSaid(t, want.said)
		wantStats(t, q, 0, int64(want.pushed), 0)
	}
}

// slowQueue pushes once it may.
type slowQueue struct {
	delayq.Queue
	begin  chan struct{}
	pushed int
}

func (q *slowQueue) PushBatch(_ context.Context, ms []delayq.Message) ([]string, error) {
	<-q.begin
	q.pushed += len(ms)
	return make([]string, len(ms)), nil
}

// While a store is slow, few bytes wait in memory. A line may be longer than that.
func TestPushReadsNotFarAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := func(size int) string { return `{"body":"` + strings.Repeat("x", size) + "\"}\n" }
		in := &counted{Reader: strings.NewReader(strings.Repeat(line(1<<20), 20) + line(2*bytesInBatch) + line(1))}
		q := &slowQueue{begin: make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- pushLines(t.Context(), &pushCommand{}, q, streams{in, io.Discard, io.Discard}) }()
		synctest.Wait()
		if n := in.n.Load(); n > 2*bytesInBatch+2<<20 {
			t.Errorf("read %d bytes", n)
		}
		close(q.begin)
		if err := <-ended; err != nil || q.pushed != 22 {
			t.Errorf("%d were pushed, %v", q.pushed, err)
		}
	})
}

// A signal while the last batch goes well leaves lines that were not read: this is no success.
func TestPushInterruptedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for range 50 { // which of two things comes first is chance
		synctest.Test(t, func(t *testing.T) {
			const lines = 3 * mostInBatch
			ctx, cancel := context.WithCancel(t.Context())
			q := &slowQueue{begin: make(chan struct{})}
			ended := make(chan error, 1)
			in := strings.NewReader(strings.Repeat("{}\n", lines))
			go func() { ended <- pushLines(ctx, &pushCommand{}, q, streams{in, io.Discard, io.Discard}) }()
			synctest.Wait()
			cancel()
			synctest.Wait()
			close(q.begin)
			if err := <-ended; exitCode(err) != exitInterrupted || q.pushed == lines {
				t.Errorf("%d of %d were pushed, %v", q.pushed, lines, err)
			}
		})
	}
}

func TestPushIntoAFullQueue(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("{\"after\":\"1h\"}\n", 5)
	r := runIn(t.Context(), strings.NewReader(input), "push", newURL("memory")+"?max_messages=3")
	r.wantCode(t, exitStore)
	if len(strings.Fields(r.stdout)) != 3 || !strings.Contains(r.stderr, "delayq: stdin:4: queue is full\n") {
		t.Errorf("got %q, %q", r.stdout, r.stderr)
	}
}

// The random part is added to the due time of a body, and of each line.
func TestPushSpread(t *testing.T) {
	t.Parallel()
	url := newURL("memory")
	runOK(t, "push", url, "body", "--at=2100-01-31T18:00:00Z", "--spread=1h")
	runIn(t.Context(), strings.NewReader(`{"due": "2100-01-31T18:00:00Z"}`+"\n{}\n"), "push", url, "--at=2100-01-31T18:00:00Z", "--spread=1h").wantCode(t, 0)
	from := time.Date(2100, 1, 31, 18, 0, 0, 0, time.UTC)
	dues := make(map[time.Time]bool)
	for _, m := range waiting(t, url) {
		if m.Due.Before(from) || m.Due.After(from.Add(time.Hour)) {
			t.Errorf("a message is due at %v", m.Due)
		}
		dues[*m.Due] = true
	}
	if len(dues) != 3 {
		t.Errorf("there are %d due times of three messages", len(dues))
	}
	delayqRun(t, "push", url, "body", "--spread=-1s").wantCode(t, exitUnusable)
	runIn(t.Context(), strings.NewReader("{}"), "push", url, "--spread=-1s").wantCode(t, exitPartly)
	if n := len(waiting(t, url)); n != 3 {
		t.Errorf("%d messages wait after pushes that were rejected", n)
	}
}
