package dashboard

import (
	"context"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func FuzzSegment(f *testing.F) {
	for _, s := range []string{"", ".", "..", "orders", "~x", "a/b", "\x00\xff", "a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s := segment(name)
		if strings.Trim(s, plainBytes+"~") != "" || s == "" || s == "." || s == ".." {
			t.Errorf("%q becomes %q", name, s)
		}
		if back, ok := fromSegment(s); !ok || back != name {
			t.Errorf("%q becomes %q, and that %q", name, s, back)
		}
	})
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "é", "\u202e", "\xff\xfe", "a\nb", strings.Repeat("é", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{visible(s), visibleLines(s), short(s, 20), preview([]byte(s)), viewBody([]byte(s), "").Text} {
			if !utf8.ValidString(got) || strings.ContainsAny(got, "\u202e\u2066\u200b\x00\x1b\x7f") {
				t.Errorf("%q is shown as %q", s, got)
			}
		}
		if n := utf8.RuneCountInString(short(s, 20)); n > 21 {
			t.Errorf("%q is shortened to %d characters", s, n)
		}
	})
}

// Nested JSON of some kilobytes would be indented to gigabytes.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	const depth = 3000
	opening, closing := strings.Repeat("[", depth), strings.Repeat("]", depth)
	for name, body := range map[string]string{
		"closed":          opening + strings.Repeat("1,", 3000) + "1" + closing,
		"closed too much": opening + strings.Repeat("1,", 3000) + "1" + closing + closing,
		"text":            opening + `"\"]]]",` + strings.Repeat("1,", 3000) + "1" + closing,
	} {
		for _, as := range []string{"", "json"} {
			if v := viewBody([]byte(body), as); v.As != "text" || v.Text != body {
				t.Errorf("%s is shown as %s of %d bytes", name, v.As, len(v.Text))
			}
		}
	}
	for body, want := range map[string]string{
		`["[[[","\"",{"a":1}]`:                   "[\n  \"[[[\",\n  \"\\\"\",\n  {\n    \"a\": 1\n  }\n]",
		"[" + strings.Repeat("1,", 1<<10) + "1]": "[" + strings.Repeat("\n  1,", 1<<10) + "\n  1\n]",
	} {
		if v := viewBody([]byte(body), ""); v.As != "json" || v.Text != want {
			t.Errorf("%s is shown as %s %s", body, v.As, v.Text)
		}
	}
}

// A job that has ended keeps no ids: there may be 200,000 of them.
func TestEndedJobKeepsNoIDs(t *testing.T) {
	t.Parallel()
	js := newJobs(t.Context(), slog.New(slog.DiscardHandler))
	two := func(context.Context, string, int) ([]delayq.MessageInfo, string, error) { //nolint:unparam // it has the signature of a list
		return []delayq.MessageInfo{{ID: "a"}, {ID: "b"}}, "", nil
	}
	counted := func() *job {
		j, err := js.start("q", change{action: Cancel}, filter{}, func(ctx context.Context, j *job) error { return j.count(ctx, two) })
		if err != nil {
			t.Fatal(err)
		}
		js.running.Wait()
		return j
	}
	left, done := counted(), counted()
	left.stop()
	if !done.begin() {
		t.Fatal("the job does not begin")
	}
	js.run(done, finished, func(context.Context, *job) error { return nil })
	js.running.Wait()
	for _, j := range []*job{left, done} {
		if j.ids != nil || j.show().Matched != "2" {
			t.Errorf("a job that is %s has the ids %q of %s messages", j.state, j.ids, j.show().Matched)
		}
	}
}

// A job that is stopped before its work has begun does none.
func TestJobStoppedAtItsBegin(t *testing.T) {
	t.Parallel()
	js := newJobs(t.Context(), slog.New(slog.DiscardHandler))
	j := &job{state: asking, ids: []string{"a"}, cancel: func() {}}
	if !j.begin() {
		t.Fatal("the job does not begin")
	}
	j.stop()
	js.run(j, finished, func(ctx context.Context, _ *job) error {
		if ctx.Err() == nil {
			t.Error("the job works")
		}
		return ctx.Err()
	})
	js.running.Wait()
}

// Enter in a field presses the first button of its form.
func TestFormsWithSeveralButtonsBeginWithOneThatDoesNothing(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := fs.ReadFile(templateFiles, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range regexp.MustCompile(`(?s)<form[^>]*>(.*?)</form>`).FindAllStringSubmatch(string(text), -1) {
			if strings.Count(form[1], "<button") < 2 {
				continue
			}
			if found++; !strings.HasPrefix(form[1], `{{template "enter"}}`) {
				t.Errorf("%s: %.80s", file, form[0])
			}
		}
	}
	if found < 4 {
		t.Errorf("%d forms; there are more", found)
	}
}

func FuzzParseSpan(f *testing.F) {
	for _, s := range []string{"1d", "1w2d3h", "-1s", "1h1d", "99999999999h", "d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseSpan(s); d < 0 || err != nil && d != 0 {
			t.Errorf("%q is %v, %v", s, d, err)
		}
	})
}

func TestParseSpan(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1d": 24 * time.Hour, "1w2d3h": (9*24 + 3) * time.Hour, "0s": 0, "2w": 14 * 24 * time.Hour,
		"": -1, "1": -1, "-1h": -1, "d": -1, "1h1d": -1, "1.5d": -1, "1e9d": -1,
		"36500d": 36500 * 24 * time.Hour, "36501d": -1, "30501w": -1 /* its nanoseconds overflow to 3 days */, "36500d1s": -1, "5214w36500d": -1,
	} {
		if got, err := parseSpan(s); want < 0 && err == nil || want >= 0 && (got != want || err != nil) {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s",
		time.Hour: "1 h", 25*time.Hour + time.Minute: "1 d 1 h", 400 * 24 * time.Hour: "1 y 35 d", -time.Minute: "-1 min",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", delayq.Unknown: "?"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// A chart has gaps where the store did not reply, and rates are of the last ten seconds.
func TestFigures(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	at := func(seconds int, ready int64, err error) sample {
		return sample{at: began.Add(time.Duration(seconds) * time.Second), stats: delayq.Stats{Ready: ready, Activity: delayq.Activity{Pushed: 2 * ready, Acked: 100 - ready}}, err: err}
	}
	f := figuresOf([]sample{at(0, 0, nil), at(30, 0, delayq.ErrUnavailable), at(50, 5, nil), at(60, 10, nil)}, true)
	if got, want := f.Paths["ready"], "M0.0 47.0M250.0 24.5L300.0 2.0"; got != want {
		t.Errorf("the chart is %q, want %q", got, want)
	}
	if f.Texts["in"] != "1.0" || f.Texts["top-in"] != "highest 1.0" || f.Texts["out"] != "–" || f.Texts["top-ready"] != "highest 10" || f.Texts["since"] != "the last 1 min" {
		t.Errorf("got %v", f.Texts)
	}
	var now delayq.Activity
	past := now
	past.Lateness.Add(time.Hour)
	now.Lateness = past.Lateness
	for range 99 {
		now.Lateness.Add(2 * time.Millisecond)
	}
	now.Lateness.Add(2 * time.Hour)
	activity := func(a ...delayq.Activity) (samples []sample) {
		for _, a := range a {
			samples = append(samples, sample{at: began, stats: delayq.Stats{Activity: a}})
		}
		return samples
	}
	for want, samples := range map[string][]sample{
		"–":      activity(past, past),
		"≤ 2 ms": append([]sample{{err: delayq.ErrUnavailable}}, activity(past, now)...),
		"> 1 h":  activity(delayq.Activity{}, delayq.Activity{Lateness: delayq.LatenessHistogram{len(now.Lateness) - 1: 3}}),
	} {
		if got := figuresOf(samples, true).Texts["late99"]; got != want {
			t.Errorf("the lateness is %q, want %q", got, want)
		}
	}
	unknown := delayq.Stats{Scheduled: delayq.Unknown, Ready: 3, InFlight: delayq.Unknown, OldestReady: delayq.Unknown, Activity: backend.UnknownActivity}
	f = figuresOf([]sample{{at: began, stats: unknown}, {at: began.Add(10 * time.Second), stats: unknown}}, true)
	for _, name := range []string{"scheduled", "inflight", "oldest", "head", "in", "out", "late50", "late99"} {
		if f.Texts[name] != "?" || f.Texts["top-"+name] != "" {
			t.Errorf("%s is %q, %q", name, f.Texts[name], f.Texts["top-"+name])
		}
	}
}
