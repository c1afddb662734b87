package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// javaQueue is a queue as a Java process leaves it, of a name of its own.
type javaQueue struct {
	name, url string
	client    *redis.Client
}

func newJavaQueue(t *testing.T) *javaQueue {
	t.Helper()
	server := testenv.SharedRedis(t)
	name := rand.Text()
	return &javaQueue{name, "redisson" + strings.TrimPrefix(server.URL(), "redis") + "/" + name, server.Client(t)}
}

func (q *javaQueue) timeouts() string { return "redisson_delay_queue_timeout:{" + q.name + "}" }

// offer adds a member to both of Redisson's structures, as its offer does.
func (q *javaQueue) offer(t *testing.T, due time.Time, member []byte) {
	t.Helper()
	_, err := q.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ZAdd(t.Context(), q.timeouts(), redis.Z{Score: float64(due.UnixMilli()), Member: member})
		p.RPush(t.Context(), "redisson_delay_queue:{"+q.name+"}", member)
		return nil
	})
	mustDo(t, err)
}

// member is an id, the length, and the payload; 3.21.1 and newer write the id's length before it.
func member(id, payload string) []byte {
	return append(binary.LittleEndian.AppendUint64([]byte(id), uint64(len(payload))), payload...)
}

const (
	oldID  = "\x81\xe9\x7d\xf4\x10\x22\xb1\xc3"
	newID  = "\x08\x01\x02\x03\x04\x05\x06\x07\x08"
	bothID = "\x07abcdefg"
)

// far is a due time that no test lives to see.
func far(d time.Duration) time.Time { return time.Now().Add(time.Hour + d).Truncate(time.Millisecond) }

// offerOneOfEach offers a member of each layout, one that the codec cannot read and one that no
// codec can, due in that order.
func (q *javaQueue) offerOneOfEach(t *testing.T) (first time.Time) {
	t.Helper()
	first = far(0)
	for i, m := range [][]byte{
		member(newID, "hello"), member(oldID, "order 17"), member(bothID, `{"a":1}`),
		member("\x08\x02\x02\x03\x04\x05\x06\x07\x08", "\xff\xfe"), []byte("no member of Redisson's"),
	} {
		q.offer(t, first.Add(time.Duration(i)*time.Second), m)
	}
	return first
}

func TestInspect(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	due := q.offerOneOfEach(t)
	r := runOK(t, "redisson", "inspect", q.url)
	r.wantOutput(t, "Queue "+q.name+"\n",
		row("timeouts", 5, q.timeouts()), row("destination", 0, q.name), row("index", 5, "redisson_delay_queue:{"+q.name+"}"),
		row("subscribers", 0, "redisson_delay_queue_channel:{"+q.name+"}"), row("quarantine", 0, "delayq_quarantine:{"+q.name+"}"),
		row("V1", 1, "up to 3.21.0      up to 3.21.0"), row("V2", 2, "3.21.1 and newer  3.21.1 and newer"),
		row("Both", 1, "every version     delayq, "), row("unreadable", 1, "never"),
		fmt.Sprintf("%-*s  V2             0  080102030405060708-%d\n    \"hello\"\n", stampWidth(), at(due), due.UnixMilli()),
		"  V1             0  81e97df41022b1c3-", "    \"order 17\"\n", "    `{\"a\":1}`\n",
		"    ! codec string: not UTF-8\n      fffe (2 bytes)\n",
		"  -              0  -\n    ! it has no layout of Redisson's\n      6e6f206d",
	)
	r.wantWidth(t, 56+stampWidth(), q.name)
	r = delayqRun(t, "redisson", "inspect", q.url, "--pending=2")
	r.wantOutput(t, "order 17", "There are more than 2; --pending=N shows them.")
}

// row begins a line of a table.
func row(what string, n int, rest string) string {
	return fmt.Sprintf("\n%-12s %10d  %s", what, n, rest)
}

// wantWidth wants lines of at most so many columns, but where a long name is in them.
func (r result) wantWidth(t *testing.T, columns int, long string) {
	t.Helper()
	for line := range strings.Lines(r.stdout) {
		if width(strings.TrimSuffix(line, "\n")) > columns && !strings.Contains(line, long) {
			t.Errorf("more than %d columns: %s", columns, line)
		}
	}
}

func TestInspectInJSON(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	due := q.offerOneOfEach(t)
	r := runOK(t, "redisson", "inspect", q.url, "--json")
	var got inspectionJSON
	r.decode(t, &got)
	if want := (countsJSON{Timeouts: 5, Index: 5}); got.Counts != want || got.Unreadable != 1 || got.More || len(got.Keys.Own) == 0 {
		t.Errorf("got %+v", got)
	}
	if len(got.Formats) != 3 || got.Formats[0] != (formatJSON{"V1", 1, "up to 3.21.0", "up to 3.21.0"}) {
		t.Errorf("got the formats %+v", got.Formats)
	}
	if len(got.Pending) != 5 {
		t.Fatalf("got %d, want 5 that wait: %s", len(got.Pending), r.stdout)
	}
	first, foreign, garbage := got.Pending[0], got.Pending[3], got.Pending[4]
	if first.ID != "080102030405060708-"+strconv.FormatInt(due.UnixMilli(), 10) || !first.Due.Equal(due) ||
		string(*first.Body) != "hello" || !bytes.Equal(first.Member, member(newID, "hello")) {
		t.Errorf("got %+v", first)
	}
	if foreign.Format != "V2" || foreign.Body != nil || foreign.BodyBase64 != nil || !strings.Contains(foreign.Error, "not UTF-8") {
		t.Errorf("got %+v", foreign)
	}
	if garbage.ID != "" || garbage.Format != "" || string(garbage.Member) != "no member of Redisson's" {
		t.Errorf("got %+v", garbage)
	}
}

// decode reads one JSON value, and wants nothing behind it.
func (r result) decode(t *testing.T, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || d.More() {
		t.Fatalf("decoding: %v, more: %v\n%s", err, d.More(), r.stdout)
	}
}

func TestInspectPagesAndChangesNothing(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	for i := range 1500 {
		q.offer(t, far(time.Duration(i)*time.Millisecond), member(fmt.Sprintf("\x08%08d", i), strconv.Itoa(i)))
	}
	before := q.dump(t)
	r := runOK(t, "redisson", "inspect", q.url, "--json", "--pending=1200")
	var got inspectionJSON
	r.decode(t, &got)
	if n := len(got.Pending); n != 1200 || !got.More || string(*got.Pending[n-1].Body) != "1199" {
		t.Errorf("got %d that wait, more: %v", n, got.More)
	}
	if after := q.dump(t); !slices.Equal(before, after) {
		t.Errorf("the keys were %.100q and are %.100q", before, after)
	}
}

// dump has all keys of the queue, and their content.
func (q *javaQueue) dump(t *testing.T) (all []string) {
	t.Helper()
	keys := q.client.Keys(t.Context(), "*"+q.name+"*").Val()
	slices.Sort(keys)
	for _, key := range keys {
		all = append(all, key, q.client.Dump(t.Context(), key).Val())
	}
	return all
}

func TestInspectOfNothing(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	r := runOK(t, "redisson", "inspect", q.url)
	r.wantOutput(t, row("timeouts", 0, q.timeouts()))
	words := strings.Fields(r.stdout) // the name of the queue may have a DUE in it
	if slices.Contains(words, "FORMAT") || slices.Contains(words, "DUE") {
		t.Errorf("tables of nothing:\n%s", r.stdout)
	}
}

const garbage = "no member of Redisson's"

// newQuarantine returns a queue of which garbage was put aside, by a worker that found it before a
// good message.
func newQuarantine(t *testing.T) *javaQueue {
	t.Helper()
	q := newJavaQueue(t)
	q.offer(t, time.Now().Add(-time.Minute), []byte(garbage))
	q.offer(t, time.Now().Add(-time.Minute), []byte("\x00\x01\x02"))
	q.offer(t, time.Now().Add(-time.Second), member(newID, "hello"))
	q.work(t, "hello")
	return q
}

// work takes one message, which must be the one that is wanted.
func (q *javaQueue) work(t *testing.T, want string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	queue, err := delayq.Open(ctx, q.url)
	mustDo(t, err)
	defer func() { _ = queue.Close() }()
	d, err := queue.Receive(ctx)
	if err != nil || string(d.Body) != want {
		t.Fatalf("got %+v, %v; want %s", d, err, want)
	}
	mustDo(t, d.Ack(ctx))
}

// aside lists the quarantine.
func (q *javaQueue) aside(t *testing.T) []quarantinedJSON {
	t.Helper()
	return decodeLines[quarantinedJSON](t, runOK(t, "redisson", "quarantine", q.url, "--json").stdout)
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	q := newQuarantine(t)
	all := q.aside(t)
	if len(all) != 2 {
		t.Fatalf("got %+v, want two", all)
	}
	at := slices.IndexFunc(all, func(i quarantinedJSON) bool { return string(i.Bytes) == garbage })
	if at < 0 || all[at].Place != "timeouts" || all[at].Length != len(garbage) || all[at].Reason == "" || *all[at].Text != garbage || all[1-at].Text != nil {
		t.Errorf("got %+v", all)
	}
	r := runOK(t, "redisson", "quarantine", q.url)
	r.wantOutput(t, all[0].ID, all[1].ID, "  timeouts\n    ! it has no layout of Redisson's\n      000102 (3 bytes)\n",
		fmt.Sprintf("      %x (23 bytes)\n", garbage))
	r.wantWidth(t, 56+stampWidth(), q.name)
	r = delayqRun(t, "redisson", "quarantine", q.url, "--limit=1")
	r.wantOutput(t, "There are more than 1; --limit=N shows them.")
	delayqRun(t, "redisson", "inspect", q.url).wantOutput(t, row("quarantine", 2, "delayq_quarantine:"))
}

func TestQuarantineDeletes(t *testing.T) {
	t.Parallel()
	q := newQuarantine(t)
	all := q.aside(t)
	r := delayqRun(t, "redisson", "quarantine", q.url, "--delete", all[0].ID+",0123")
	r.want(t, result{exitPartly, "deleted 1\n", "delayq: \"0123\": nothing of that id is in the quarantine\ndelayq: 1 of 2: not done\n"})
	if left := q.aside(t); len(left) != 1 || left[0].ID != all[1].ID {
		t.Errorf("left: %+v", left)
	}
	runOK(t, "redisson", "quarantine", q.url, "--delete", all[1].ID)
	r = delayqRun(t, "redisson", "quarantine", q.url)
	r.wantOutput(t, "Nothing of queue "+q.name+" is in the quarantine.")
	if keys := q.dump(t); len(keys) != 0 {
		t.Errorf("left: %q", keys)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	q := newQuarantine(t)
	all := q.aside(t)
	r := delayqRun(t, "redisson", "restore", q.url, all[0].ID, "0123")
	r.want(t, result{exitPartly, "restored 1\n", "delayq: \"0123\": nothing of that id is in the quarantine\ndelayq: 1 of 2: not done\n"})
	score, err := q.client.ZScore(t.Context(), q.timeouts(), string(all[0].Bytes)).Result()
	if err != nil || int64(score) != all[0].Due.UnixMilli() {
		t.Errorf("its score is %v, %v; want %v", score, err, all[0].Due)
	}
	r = runOK(t, "redisson", "restore", q.url, "--all")
	r.wantOutput(t, "restored 1\nMembers that still cannot be read come back to the quarantine when they are due.\n")
	if left := q.aside(t); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
	q.offer(t, time.Now().Add(-time.Second), member(oldID, "next"))
	q.work(t, "next")
	if again := q.aside(t); len(again) != 2 {
		t.Errorf("got %+v, want both again", again)
	}
}

// A dead letter that the codec cannot read says so, in text and in JSON. It is not shown as a body.
func TestUnreadableDeadLetter(t *testing.T) {
	t.Parallel()
	q := newJavaQueue(t)
	q.offer(t, time.Now().Add(-time.Minute), member(newID, "\xff\xfe"))
	q.offer(t, time.Now().Add(-time.Second), member(oldID, "hello"))
	q.work(t, "hello")
	var all []messageJSON
	until(t, "dead letter", func() bool {
		all = decodeLines[messageJSON](t, runOK(t, "dead", "list", q.url, "--json").stdout)
		return len(all) > 0
	})
	shown := decodeLines[messageJSON](t, runOK(t, "get", q.url, all[0].ID, "--json").stdout)
	for _, m := range append(all, shown...) {
		if !strings.Contains(m.Error, "not UTF-8") || string(m.BodyBase64) != "\xff\xfe" || m.Reason == nil {
			t.Errorf("got %+v", m)
		}
	}
	exported := runOK(t, "dead", "list", q.url, "--json").stdout
	runIn(t.Context(), strings.NewReader(exported), "push", newURL("memory")).wantCode(t, exitPartly)
	for _, args := range [][]string{{"dead", "list", q.url}, {"get", q.url, all[0].ID}} {
		runOK(t, args...).wantOutput(t, "    ! codec string: not UTF-8\n      fffe (2 bytes)\n")
	}
}

func TestPasswordsStayHidden(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redisson://user:s3cret@127.0.0.1:%s/q", "redisson://:s3cret@127.0.0.1:%s/q?codec=nosuch", "redisson://:s3cret@127.0.0.1:%s/",
		"redisson://:s3c@s3cret@127.0.0.1:%s/q", "redisson://:s3cret#@127.0.0.1:%s/q", "redisson://:s3cret%%zz@127.0.0.1:%s/q",
		"zsetpoll://:s3cret@127.0.0.1:%s/q", "keyspace://:s3cret@127.0.0.1:%s/q?sentinel_password=s3cret", "rabbitmq://guest:s3cret@127.0.0.1:%s/q",
		"rabbitmq://guest:s3cret@127.0.0.1:%s/", "nosuch://user:s3cret@127.0.0.1:%s/q", "redis://user:s3cret@127.0.0.1:%s/q",
	} {
		url = fmt.Sprintf(url, closedPort(t))
		for _, command := range []string{
			"redisson inspect URL", "redisson quarantine URL", "redisson restore URL --all", "push URL body", "consume URL --verbose", "stats URL",
			"get URL id", "peek URL", "cancel URL id", "reschedule URL id --after=1s", "dead list URL", "dead redrive URL --all", "dead delete URL id",
			"purge URL --yes", "verify URL", "doctor URL", "demo --url=URL", "stats URL URL", "URL", "demo URL", "completion URL", "stats URL --every=URL", "push --nosuch=URL",
		} {
			r := delayqRun(t, strings.Fields(strings.ReplaceAll(command, "URL", url))...)
			if r.code != exitUnusable && r.code != exitStore {
				t.Errorf("%s of %s: exit code %d", command, url, r.code)
			}
			if r.stderr == "" || strings.Contains(r.stdout+r.stderr, "s3c") {
				t.Errorf("%s of %s: got %q", command, url, r.stdout+r.stderr)
			}
		}
	}
}

// closedPort returns a port without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	mustDo(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	mustDo(t, errors.Join(err, l.Close()))
	return port
}

func TestRedissonInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runIn(ctx, nil, "redisson", "inspect", newJavaQueue(t).url).wantCode(t, 130)
}

func TestSceneSharedWithJava(t *testing.T) {
	t.Parallel()
	for _, codec := range []string{"bytes", "envelope"} {
		r := runOK(t, "demo", "--speed=20", "--url", newJavaQueue(t).url+"?codec="+codec)
		r.wantSummary(t, "pushed 38 ", promisesKept)
	}
}
