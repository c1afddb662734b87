package backend_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// TestUnsupportedHasEveryVerb holds Unsupported against the interface: each method but Close is
// there and returns ErrUnsupported, once for each message where it returns a slice of errors.
func TestUnsupportedHasEveryVerb(t *testing.T) {
	t.Parallel()
	const messages = 3
	queue, none := reflect.TypeFor[backend.Queue](), reflect.ValueOf(backend.Unsupported{})
	for i := range queue.NumMethod() {
		name := queue.Method(i).Name
		method := none.MethodByName(name)
		if name == "Close" {
			if method.IsValid() {
				t.Error("Unsupported has a Close, so that a backend may forget its own")
			}
			continue
		}
		if !method.IsValid() {
			t.Errorf("Unsupported has no %s", name)
			continue
		}
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		many := false
		for i := 1; i < method.Type().NumIn(); i++ {
			in := method.Type().In(i)
			arg := reflect.Zero(in)
			if in.Kind() == reflect.Slice {
				arg, many = reflect.MakeSlice(in, messages, messages), true
			}
			args = append(args, arg)
		}
		results := method.Call(args)
		errs := []error{nil}
		switch last := results[len(results)-1].Interface().(type) {
		case []error:
			errs = last
		case error:
			errs[0] = last
		}
		if want := map[bool]int{true: messages, false: 1}[many]; len(errs) != want {
			t.Errorf("%s returns %d errors; want %d", name, len(errs), want)
		}
		for _, err := range errs {
			if !errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("%s returns %v", name, err)
			}
		}
		if ends, ok := results[0].Interface().([]time.Time); ok && len(ends) != messages {
			t.Errorf("%s returns %d ends; want %d", name, len(ends), messages)
		}
	}
}

// TestFeaturesCoverTheVerbs looks for features without a name, and for verbs that are not in the
// interface or belong to two features.
func TestFeaturesCoverTheVerbs(t *testing.T) {
	t.Parallel()
	queue := reflect.TypeFor[backend.Queue]()
	var names, verbs []string
	for _, f := range backend.Features() {
		if f.String() == "" || slices.Contains(names, f.String()) {
			t.Errorf("feature %d is called %q", int(f), f)
		}
		names = append(names, f.String())
		for _, verb := range f.Verbs() {
			if _, ok := queue.MethodByName(verb); !ok || slices.Contains(verbs, verb) {
				t.Errorf("%v covers %s, which Queue does not have or another feature covers", f, verb)
			}
			verbs = append(verbs, verb)
		}
	}
	if backend.Features()[0] != backend.Cancelling || len(backend.Feature(0).Verbs()) > 0 {
		t.Error("the first feature is not Cancelling, or no feature has verbs")
	}
}

// The old name is kept for a release.
func TestOldNameOfKeepingHeaders(t *testing.T) {
	t.Parallel()
	if backend.Headers != backend.KeepingHeaders {
		t.Error("Headers is another feature")
	}
}

func TestFeatureSet(t *testing.T) {
	t.Parallel()
	s := backend.Lacking(backend.OwnIDs, backend.Peeking)
	for _, f := range backend.Features() {
		want := f == backend.OwnIDs || f == backend.Peeking || f == backend.UniqueWindows || f == backend.Replacing || f == backend.ReplacingInFlight // implied
		if s.Has(f) != want {
			t.Errorf("%v is in the set: %t", f, s.Has(f))
		}
		if tr := (backend.Traits{Lacks: s}); tr.Supports(f) == want {
			t.Errorf("%v is lacking and supported, or neither", f)
		}
	}
	for _, f := range []backend.Feature{-1, 0, 31, 64, 99} {
		all := backend.Lacking(backend.Features()...)
		if all.Has(f) || all.With(f) != all || (backend.Traits{}).Supports(f) {
			t.Errorf("%v is a feature", f)
		}
	}
}
