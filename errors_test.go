package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

// How a user meets each sentinel.
var sentinels = map[string]struct {
	sentinel error
	provoke  func(*testing.T) error
}{
	"ErrClosed": {delayq.ErrClosed, func(t *testing.T) error {
		q := newQueue(t)
		must(t, q.Close())
		_, err := q.Push(t.Context(), nil)
		return err
	}},
	"ErrNotFound": {delayq.ErrNotFound, func(t *testing.T) error { return newQueue(t).Cancel(t.Context(), "x") }},
	"ErrInFlight": {delayq.ErrInFlight, func(t *testing.T) error { return newScene(t).Cancel(t.Context(), "held") }},
	"ErrLeaseLost": {delayq.ErrLeaseLost, func(t *testing.T) (err error) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, delayq.WithLease(time.Second))
			push(t, q)
			d := receive(t, q)
			time.Sleep(time.Second)
			err = d.Ack(t.Context())
		})
		return err
	}},
	"ErrSettled": {delayq.ErrSettled, func(t *testing.T) error {
		s := newScene(t)
		must(t, s.held.Ack(t.Context()))
		return s.held.Nack(t.Context(), 0)
	}},
	"ErrDuplicate": {delayq.ErrDuplicate, func(t *testing.T) error {
		_, err := newScene(t).Push(t.Context(), nil, delayq.ID("dead"))
		return err
	}},
	"ErrFull": {delayq.ErrFull, func(t *testing.T) error {
		q := newQueue(t, delayq.WithBackend(memory.New(memory.MaxBytes(100))))
		_, err := q.Push(t.Context(), make([]byte, 101))
		return err
	}},
	"ErrUnconfirmed": {delayq.ErrUnconfirmed, func(t *testing.T) error { // zsetpoll has the real one: TestWaitReplicas
		return pushFailing(t, fmt.Errorf("%w: no replica did", backend.ErrUnconfirmed))
	}},
	"ErrUnavailable": {delayq.ErrUnavailable, func(t *testing.T) error { // the backends have the real ones
		return pushFailing(t, fmt.Errorf("%w: connection refused", backend.ErrUnavailable))
	}},
	"ErrOutcomeUnknown": {delayq.ErrOutcomeUnknown, func(t *testing.T) error {
		return pushFailing(t, fmt.Errorf("%w: connection reset", backend.ErrOutcomeUnknown))
	}},
	"ErrUnsupported": {delayq.ErrUnsupported, func(t *testing.T) error {
		s := newSeam()
		s.traits = lacking(backend.Cancelling)
		return newQueue(t, s.option()).Cancel(t.Context(), "x")
	}},
	"ErrInvalid": {delayq.ErrInvalid, func(t *testing.T) error {
		_, err := newQueue(t).Push(t.Context(), nil, delayq.After(-1))
		return err
	}},
	"ErrUnknownScheme": {delayq.ErrUnknownScheme, func(t *testing.T) error {
		_, err := delayq.Open(t.Context(), "pigeon:///orders")
		return err
	}},
	"ErrDrain": {delayq.ErrDrain, func(t *testing.T) (err error) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t)
			push(t, q)
			err = q.Consume(t.Context(), func(context.Context, *delayq.Delivery) error {
				go func() { _ = q.Close() }()
				time.Sleep(time.Hour)
				return nil
			})
			time.Sleep(time.Hour)
		})
		return err
	}},
}

// pushFailing returns Push's error for a store's error.
func pushFailing(t *testing.T, stored error) error {
	s := newSeam()
	s.before = func(_ context.Context, op string) error {
		if op != "schedule" {
			return nil
		}
		return stored
	}
	_, err := newQueue(t, s.option()).Push(t.Context(), nil)
	return err
}

func TestSentinelsAreReachable(t *testing.T) {
	t.Parallel()
	for name, tt := range sentinels {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.provoke(t)
			wantIs(t, err, tt.sentinel)
			for other, o := range sentinels {
				if other != name && errors.Is(err, o.sentinel) {
					t.Errorf("%v is %s, too", err, other)
				}
			}
			if !strings.HasPrefix(err.Error(), "delayq: ") {
				t.Errorf("message %q does not say where it comes from", err)
			}
		})
	}
}

// The sentinels that a store, a lease or a consumer returns live in the errors.go of package
// backend, or in the internal packages. Each is described there and exported here once. Those that
// handlers return live here.
func TestSentinelsAreExportedOnce(t *testing.T) {
	t.Parallel()
	theirs, ours := make(map[string]string), errorVars(t, ".")
	for pkg, dir := range map[string]string{"backend": "backend", "lease": "internal/lease", "consumer": "internal/consumer"} {
		for name, v := range errorVars(t, dir) {
			theirs[name] = pkg + "." + name
			if pkg == "backend" && v.file != "errors.go" {
				t.Errorf("backend.%s is in %s, away from the others", name, v.file)
			}
			if !strings.HasPrefix(v.doc, name+" ") {
				t.Errorf("%s.%s has no comment that begins with its name", pkg, name)
			}
			if v.value != "errors.New" {
				t.Errorf("%s.%s is made by %s", pkg, name, v.value)
			}
			if _, ok := ours[name]; !ok {
				t.Errorf("%s.%s is not exported by package delayq", pkg, name)
			}
		}
	}
	for name, v := range ours {
		want, exported := theirs[name]
		if !exported {
			want = "errors.New"
		}
		if v.value != want {
			t.Errorf("%s is %s, want %s", name, v.value, want)
		}
		if v.doc == "" {
			t.Errorf("%s has no comment", name)
		}
		if _, ok := sentinels[name]; !ok && handlerErrors[name] == nil {
			t.Errorf("%s is not tested", name)
		}
	}
}

type errorVar struct{ file, doc, value string }

// errorVars reads the exported sentinels of the package in a directory.
func errorVars(t *testing.T, dir string) map[string]errorVar {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	vars := make(map[string]errorVar)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Err") {
				return true
			}
			name := spec.Names[0].Name
			if _, twice := vars[name]; twice || len(spec.Names) != 1 || len(spec.Values) != 1 {
				t.Errorf("%s: %s is not declared once, on its own", path, name)
				return true
			}
			vars[name] = errorVar{filepath.Base(path), spec.Doc.Text() + spec.Comment.Text(), written(spec.Values[0])}
			return true
		})
	}
	if len(vars) == 0 {
		t.Fatalf("no sentinels in %s", dir)
	}
	return vars
}

// written returns the text of a selector or call: "pkg.Name".
func written(e ast.Expr) string {
	if call, ok := e.(*ast.CallExpr); ok {
		e = call.Fun
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return "something else"
}

func TestOpErrorSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, tt := range []struct {
		err  delayq.OpError
		want string
	}{
		{delayq.OpError{Op: "open", Err: cause}, "delayq: open: cause"},
		{delayq.OpError{Op: "stats", Queue: "q", Err: cause}, `delayq: stats on queue "q": cause`},
		{delayq.OpError{Op: "ack", Queue: "q", ID: "m\n", Err: cause}, `delayq: ack on queue "q", message "m\n": cause`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		if !errors.Is(&tt.err, cause) {
			t.Errorf("%v hides its cause", &tt.err)
		}
	}
}

func TestBatchErrorWrapsAllThatFailed(t *testing.T) {
	t.Parallel()
	err := &delayq.BatchError{Errs: []error{nil, delayq.ErrFull, nil, delayq.ErrDuplicate}}
	if !errors.Is(err, delayq.ErrFull) || !errors.Is(err, delayq.ErrDuplicate) || errors.Is(err, delayq.ErrClosed) {
		t.Errorf("%v does not wrap what failed", err)
	}
	if want := "2 of 4 messages failed; the first is Errs[1]: queue is full"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// A call that needs what the backend lacks names the call or the feature.
func TestWhatABackendLacks(t *testing.T) {
	header := map[string]string{"k": "v"}
	type test struct {
		lacks backend.Feature
		call  func(*scene, context.Context) error
		op    string
	}
	queuetest.Cases(t, map[string]test{
		"cancel":              {delayq.Cancelling, methods["Queue.Cancel"], "cancel"},
		"reschedule":          {delayq.Rescheduling, methods["Queue.Reschedule"], "reschedule"},
		"stats":               {delayq.Counting, methods["Queue.Stats"], "stats"},
		"get":                 {delayq.Getting, methods["Queue.Get"], "get"},
		"get of many":         {delayq.Getting, methods["Queue.GetBatch"], "get"},
		"peek":                {delayq.Peeking, methods["Queue.Peek"], "peek"},
		"purge":               {delayq.Purging, methods["Queue.Purge"], "purge"},
		"pause all":           {delayq.Pausing, methods["Queue.PauseAll"], "pause all"},
		"resume all":          {delayq.Pausing, methods["Queue.ResumeAll"], "resume all"},
		"list":                {delayq.Redriving, methods["DeadLetters.List"], "list dead"},
		"range over all":      {delayq.Redriving, methods["DeadLetters.All"], "list dead"},
		"redrive":             {delayq.Redriving, methods["DeadLetters.Redrive"], "redrive"},
		"redrive all":         {delayq.Redriving, methods["DeadLetters.RedriveAll"], "redrive"},
		"delete":              {delayq.Redriving, methods["DeadLetters.Delete"], "delete dead"},
		"id":                  {delayq.OwnIDs, pushing(delayq.ID("mine")), "pushes with an id"},
		"id in a batch":       {delayq.OwnIDs, pushingBatch(delayq.Message{ID: "mine"}), "pushes with an id"},
		"header":              {delayq.KeepingHeaders, pushing(delayq.Header("k", "v")), "headers"},
		"header in a batch":   {delayq.KeepingHeaders, pushingBatch(delayq.Message{Headers: header}), "headers"},
		"nack with a header":  {delayq.KeepingHeaders, nacking(delayq.NackHeaders(header)), delayq.ChangingHeaders.String()},
		"nack with none":      {delayq.KeepingHeaders, nacking(delayq.NackHeaders(nil)), delayq.ChangingHeaders.String()},
		"nack with another":   {delayq.ChangingHeaders, nacking(delayq.NackHeaders(header)), delayq.ChangingHeaders.String()},
		"nack, headers fixed": {delayq.ChangingHeaders, nacking(delayq.NackHeaders(nil)), delayq.ChangingHeaders.String()},
		"window":              {delayq.UniqueWindows, pushing(delayq.ID("a"), delayq.UniqueFor(time.Hour)), delayq.UniqueWindows.String()},
		"window without ids":  {delayq.OwnIDs, pushing(delayq.ID("a"), delayq.UniqueFor(time.Hour)), delayq.UniqueWindows.String()},
		"replace":             {delayq.Replacing, pushing(delayq.ID("a"), delayq.Replace()), delayq.Replacing.String()},
		"replace in flight":   {delayq.ReplacingInFlight, pushing(delayq.ID("a"), delayq.ReplaceAfterInFlight()), delayq.ReplacingInFlight.String()},
		"replace without ids": {delayq.OwnIDs, pushing(delayq.ID("a"), delayq.Replace()), delayq.Replacing.String()},
		"limit of attempts":   {delayq.CountingAttempts, consuming(delayq.MaxAttempts(3)), "MaxAttempts"},
	}, func(t *testing.T, tt test) {
		s := newSeam()
		s.traits, s.makesIDs = lacking(tt.lacks), tt.lacks == delayq.OwnIDs
		q, witness := newPair(t, s)
		push(t, q)
		lacking := &scene{q, receive(t, q)}
		wantUnsupported(t, tt.call(lacking, t.Context()), tt.op)
		_, err := delayq.New(t.Context(), "orders", s.option(), delayq.Require(tt.lacks))
		wantUnsupported(t, err, tt.lacks.String())
		if q.Supports(tt.lacks) || !newQueue(t).Supports(tt.lacks) {
			t.Errorf("%v: supported where it is lacking, or not where it is there", tt.lacks)
		}
		// What does not need the feature is done.
		_, err = q.PushBatch(t.Context(), []delayq.Message{{Headers: map[string]string{}}})
		must(t, err)
		must(t, lacking.held.Nack(t.Context(), time.Hour))
		wantCounts(t, witness, delayq.Stats{Ready: 1, Scheduled: 1})
		ended, end := context.WithCancel(t.Context())
		end()
		must(t, q.Consume(ended, unwanted))
		must(t, q.Consume(ended, unwanted, delayq.MaxAttempts(0)))
	})
}

func wantUnsupported(t *testing.T, err error, op string) {
	t.Helper()
	wantIs(t, err, delayq.ErrUnsupported)
	var missing *delayq.UnsupportedError
	if !errors.As(err, &missing) || missing.Backend != "memory" || missing.Op != op {
		t.Errorf("%v does not name the backend and %q", err, op)
	}
}

func TestRequirementsAddUp(t *testing.T) {
	t.Parallel()
	_, err := delayq.New(t.Context(), "orders", delayq.InMemory(), delayq.Require(delayq.Durability), delayq.Require(delayq.Cancelling))
	wantUnsupported(t, err, delayq.Durability.String())
}

func TestFeaturesThatAreRequired(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = lacking(backend.Features()...)
	for _, feature := range backend.Features() {
		_, err := delayq.New(t.Context(), "orders", s.option(), delayq.Require(feature))
		wantUnsupported(t, err, feature.String())
	}
	s.traits = lackingOnly()
	newQueue(t, s.option(), delayq.Require(backend.Features()[:4]...), delayq.Require(backend.Features()[4:]...))
}
