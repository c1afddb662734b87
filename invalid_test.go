package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

// A scene is a queue with a message in each state, and time at a halt.
type scene struct {
	delayq.Queue
	held *delayq.Delivery
}

func newScene(t *testing.T) *scene {
	t.Helper()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	q := newQueue(t, delayq.WithClock(clock))
	pushDead(t, q, "dead", "a reason")
	push(t, q, delayq.ID("held"))
	held := receive(t, q)
	push(t, q, delayq.ID("ready"))
	push(t, q, delayq.ID("scheduled"), delayq.After(time.Hour))
	return &scene{q, held}
}

// wantUnchanged checks that nothing happens to the scene in do.
func (s *scene) wantUnchanged(t *testing.T, do func()) {
	t.Helper()
	before, until := stats(t, s), s.held.LeaseUntil()
	if want := (delayq.Stats{Scheduled: 1, Ready: 1, InFlight: 1, Dead: 1, HeadDue: before.HeadDue, Due: delayq.DueHistogram{2: 1}}); before != want {
		t.Fatalf("the scene has %+v, want %+v", before, want)
	}
	do()
	if after := stats(t, s); after != before {
		t.Errorf("stats are %+v, were %+v", after, before)
	}
	if !s.held.LeaseUntil().Equal(until) {
		t.Errorf("the lease ends %v, before %v", s.held.LeaseUntil(), until)
	}
}

func pushing(opts ...delayq.PushOption) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.Push(ctx, []byte("body"), opts...)
		return err
	}
}

// pushingBatch pushes a message amid two that are sound.
func pushingBatch(m delayq.Message) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.PushBatch(ctx, []delayq.Message{{}, m, {}})
		return err
	}
}

func consuming(opts ...delayq.ConsumeOption) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		err := s.Consume(ctx, unwanted, opts...)
		if before := delayq.ValidateConsumeOptions(opts...); len(opts) > 0 && fmt.Sprint(errors.Unwrap(before)) != fmt.Sprint(errors.Unwrap(err)) {
			return fmt.Errorf("ValidateConsumeOptions says %w, and Consume %w", before, err)
		}
		return err
	}
}

func backingOff(b delayq.Backoff) func(*scene, context.Context) error {
	return consuming(delayq.Retry(b))
}

var (
	nan = math.NaN()
	inf = math.Inf(1)

	year1      = time.Time{}
	year300000 = time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)
	before1970 = time.Unix(0, -1).UTC()
	after2200  = backend.LatestDue.Add(1)
)

func TestBadInputIsRefused(t *testing.T) {
	type test struct {
		do          func(*scene, context.Context) error
		what, value string
	}
	queuetest.Cases(t, map[string]test{
		"delay negative":      {pushing(delayq.After(-1)), "delay", "-1ns"},
		"delay most negative": {pushing(delayq.After(math.MinInt64)), "delay", "-2562047h47m16.854775808s"},
		"delay too long":      {pushing(delayq.After(backend.MaxDelay + 1)), "delay", "876000h0m0.000000001s"},
		"delay longest":       {pushing(delayq.After(math.MaxInt64)), "delay", "2562047h47m16.854775807s"},
		"due in year 1":       {pushing(delayq.At(year1)), "due time", "0001-01-01"},
		"due before 1970":     {pushing(delayq.At(before1970)), "due time", "1969-12-31T23:59:59.999999999"},
		"due after 2200":      {pushing(delayq.At(after2200)), "due time", "2200-01-01T00:00:00.000000001"},
		"due in year 300000":  {pushing(delayq.At(year300000)), "due time", "300000-01-01"},
		"After, At":           {pushing(delayq.After(1), delayq.At(time.Now())), "message", "due time and a delay"},
		"At, After":           {pushing(delayq.At(time.Now()), delayq.After(1)), "message", "due time and a delay"},
		"After negative, At":  {pushing(delayq.After(-1), delayq.At(time.Now())), "message", "due time and a delay"},
		"push option nil":     {pushing(delayq.ID("x"), nil), "push option", "nil"},

		"spread negative":           {pushing(delayq.Spread(-1)), "Spread", "-1ns"},
		"spread too long":           {pushing(delayq.Spread(backend.MaxDelay + 1)), "Spread", "876000h0m0.000000001s"},
		"spread beyond delays":      {pushing(delayq.After(backend.MaxDelay), delayq.Spread(1)), "delay", "876000h0m0.000000001s"},
		"spread beyond 2200":        {pushing(delayq.Spread(1), delayq.At(backend.LatestDue)), "due time", "2200-01-01T00:00:00.000000001"},
		"spread, delay negative":    {pushing(delayq.After(-1), delayq.Spread(time.Hour)), "delay", "-1ns"},
		"spread, delay longest":     {pushing(delayq.After(math.MaxInt64), delayq.Spread(time.Hour)), "delay", "2562047h47m16.854775807s"},
		"batch: spread negative":    {pushingBatch(delayq.Message{Spread: -1}), "Spread", "-1ns"},
		"batch: spread beyond 2200": {pushingBatch(delayq.Message{Due: backend.LatestDue, Spread: 1}), "due time", "2200-01-01T00:00:00.000000001"},

		"window negative":      {pushing(delayq.ID("a"), delayq.UniqueFor(-1)), "UniqueFor", "-1ns"},
		"window too short":     {pushing(delayq.ID("a"), delayq.UniqueFor(backend.MinUnique-1)), "UniqueFor", "999.999µs"},
		"window too long":      {pushing(delayq.ID("a"), delayq.UniqueFor(backend.MaxUnique+1)), "UniqueFor", "9600h0m0.000000001s"},
		"window without an id": {pushing(delayq.UniqueFor(time.Hour)), "UniqueFor", "without an ID"},
		"batch: window, no id": {pushingBatch(delayq.Message{UniqueFor: time.Hour}), "UniqueFor", "without an ID"},
		"batch: negative":      {pushingBatch(delayq.Message{ID: "a", UniqueFor: -1}), "UniqueFor", "-1ns"},
		"batch: too long":      {pushingBatch(delayq.Message{ID: "a", UniqueFor: backend.MaxUnique + 1}), "UniqueFor", "9600h0m0.000000001s"},

		"replace without an id":   {pushing(delayq.Replace()), "Replace", "without an ID"},
		"replace with a window":   {pushing(delayq.ID("a"), delayq.Replace(), delayq.UniqueFor(time.Hour)), "Replace", "with UniqueFor"},
		"max wait alone":          {pushing(delayq.ID("a"), delayq.MaxWait(time.Hour)), "MaxWait", "without Replace"},
		"after in flight alone":   {pushingBatch(delayq.Message{ID: "a", AfterInFlight: true}), "AfterInFlight", "without Replace"},
		"after in flight, no id":  {pushing(delayq.ReplaceAfterInFlight()), "Replace", "without an ID"},
		"after in flight, unique": {pushing(delayq.ID("a"), delayq.ReplaceAfterInFlight(), delayq.UniqueFor(time.Hour)), "Replace", "with UniqueFor"},
		"no max wait":             {pushing(delayq.ID("a"), delayq.Replace(), delayq.MaxWait(0)), "MaxWait", "0s"},
		"max wait negative":       {pushing(delayq.ID("a"), delayq.Replace(), delayq.MaxWait(-1)), "MaxWait", "-1ns"},
		"max wait too short":      {pushing(delayq.ID("a"), delayq.Replace(), delayq.MaxWait(backend.MinWait-1)), "MaxWait", "999.999µs"},
		"max wait too long":       {pushing(delayq.ID("a"), delayq.Replace(), delayq.MaxWait(backend.MaxDelay+1)), "MaxWait", "876000h0m0.000000001s"},
		"batch: replace, no id":   {pushingBatch(delayq.Message{Replace: true}), "Replace", "without an ID"},
		"batch: max wait alone":   {pushingBatch(delayq.Message{ID: "a", MaxWait: time.Hour}), "MaxWait", "without Replace"},
		"batch: max wait bad":     {pushingBatch(delayq.Message{ID: "a", Replace: true, MaxWait: -1}), "MaxWait", "-1ns"},
		"batch: replace, window":  {pushingBatch(delayq.Message{ID: "a", Replace: true, UniqueFor: time.Hour}), "Replace", "with UniqueFor"},
		"first push by hand":      {pushing(delayq.Header(backend.FirstPushHeader, "0")), "header key", "delayq-first-push"},

		"no attempts":                    {pushing(delayq.Attempts(0)), "Attempts", "0"},
		"too many attempts":              {pushing(delayq.Attempts(1<<30 + 1)), "Attempts", "1073741825"},
		"no handler timeout":             {pushing(delayq.HandlerTimeout(0)), "HandlerTimeout", "0s"},
		"handler timeout too long":       {pushing(delayq.HandlerTimeout(24*time.Hour + 1)), "HandlerTimeout", "24h0m0.000000001s"},
		"expires after nothing":          {pushing(delayq.ExpiresAfter(0)), "ExpiresAfter", "0s"},
		"expires after too long":         {pushing(delayq.ExpiresAfter(backend.MaxDelay + 1)), "ExpiresAfter", "876000h0m0.000000001s"},
		"expires before 1970":            {pushing(delayq.Expires(before1970)), "due time", "1969"},
		"expires in year 1":              {pushing(delayq.Expires(year1)), "due time", "0001"},
		"expires before it is due":       {pushing(delayq.At(backend.LatestDue), delayq.Expires(backend.EarliestDue)), "Expires", "1970"},
		"dead letter that never expires": {pushing(delayq.Attempts(1), delayq.DeadLetterExpired()), "DeadLetterExpired", "alone"},
		"batch: negative attempts":       {pushingBatch(delayq.Message{Limits: &delayq.Limits{Attempts: -1}}), "Attempts", "-1"},
		"batch: short timeout":           {pushingBatch(delayq.Message{Limits: &delayq.Limits{HandlerTimeout: 1}}), "HandlerTimeout", "1ns"},
		"batch: negative expiry":         {pushingBatch(delayq.Message{Limits: &delayq.Limits{ExpiresAfter: -1}}), "ExpiresAfter", "-1ns"},
		"batch: expires after 2200":      {pushingBatch(delayq.Message{Limits: &delayq.Limits{Expires: after2200}}), "due time", "2200"},
		"attempts negative":              {pushing(delayq.Attempts(-1)), "Attempts", "-1"},
		"handler timeout negative":       {pushing(delayq.HandlerTimeout(-1)), "HandlerTimeout", "-1ns"},
		"handler timeout too short":      {pushing(delayq.HandlerTimeout(time.Millisecond - 1)), "HandlerTimeout", "999.999µs"},
		"expires after negative":         {pushing(delayq.ExpiresAfter(-1)), "ExpiresAfter", "-1ns"},
		"expires after less":             {pushing(delayq.ExpiresAfter(time.Millisecond - 1)), "ExpiresAfter", "999.999µs"},
		"expires after 2200":             {pushing(delayq.Expires(after2200)), "due time", "2200-01-01T00:00:00.000000001"},
		"expires amid the spread": {
			pushing(delayq.At(backend.EarliestDue), delayq.Spread(time.Hour), delayq.Expires(backend.EarliestDue.Add(time.Minute))), "Expires", "1970",
		},
		"replace, bad attempts": {pushing(delayq.ID("scheduled"), delayq.Replace(), delayq.Attempts(0)), "Attempts", "0"},
		"replace, bad delay":    {pushing(delayq.ID("scheduled"), delayq.Replace(), delayq.After(-1)), "delay", "-1ns"},
		"replace, bad spread":   {pushing(delayq.ID("scheduled"), delayq.Replace(), delayq.Spread(-1)), "Spread", "-1ns"},
		"replace the dead, bad": {pushing(delayq.ID("dead"), delayq.Replace(), delayq.MaxWait(-1)), "MaxWait", "-1ns"},
		"in flight, bad header": {pushing(delayq.ID("held"), delayq.ReplaceAfterInFlight(), delayq.Header("", "v")), "header key", `""`},
		"in flight, bad wait":   {pushing(delayq.ID("held"), delayq.ReplaceAfterInFlight(), delayq.MaxWait(backend.MaxDelay+1)), "MaxWait", "876000h0m0.000000001s"},
		"batch: in flight, no id": {
			pushingBatch(delayq.Message{Replace: true, AfterInFlight: true}), "Replace", "without an ID",
		},
		"no room for limits": {
			pushing(delayq.Header("k", strings.Repeat("v", backend.MaxHeaders-backend.HeaderCost-1)), delayq.Attempts(1)), "headers", "of 65",
		},

		"id empty":           {pushing(delayq.ID("")), "id", `""`},
		"id too long":        {pushing(delayq.ID(strings.Repeat("x", 256))), "id", "xxx"},
		"id with NUL":        {pushing(delayq.ID("a\x00b")), "id", `a\x00b`},
		"id with C1 control": {pushing(delayq.ID("a\u0085")), "id", `a\u0085`},
		"id with DEL":        {pushing(delayq.ID("a\x7f")), "id", `a\x7f`},
		"id with newline":    {pushing(delayq.ID("a\nb")), "id", `a\nb`},
		"id not UTF-8":       {pushing(delayq.ID("a\xff")), "id", `a\xff`},

		"header key empty":     {pushing(delayq.Header("", "v")), "header key", `""`},
		"header key too long":  {pushing(delayq.Header(strings.Repeat("k", 256), "v")), "header key", "kkk"},
		"header key with NUL":  {pushing(delayq.Header("a\x00", "v")), "header key", `a\x00`},
		"header key not UTF-8": {pushing(delayq.Header("\xc3", "v")), "header key", `\xc3`},
		"header key reserved":  {pushing(delayq.Header("delayq-attempt", "v")), "header key", "delayq-attempt"},
		"headers too large":    {pushing(delayq.Header("k", strings.Repeat("v", backend.MaxHeaders))), "headers", "65545 bytes"},
		"headers too large together": {
			pushing(delayq.Header("a", strings.Repeat("v", 40_000)), delayq.Header("b", strings.Repeat("v", 40_000))),
			"headers", "80018 bytes",
		},

		"batch: due before 1970":    {pushingBatch(delayq.Message{Due: before1970}), "due time", "1969"},
		"batch: delay negative":     {pushingBatch(delayq.Message{Delay: -1}), "delay", "-1ns"},
		"batch: delay too long":     {pushingBatch(delayq.Message{Delay: math.MaxInt64}), "delay", "2562047h"},
		"batch: due in year 300000": {pushingBatch(delayq.Message{Due: year300000}), "due time", "300000"},
		"batch: due and delay":      {pushingBatch(delayq.Message{Due: time.Now(), Delay: 1}), "message", "due time and a delay"},
		"batch: id":                 {pushingBatch(delayq.Message{ID: "\x00"}), "id", `\x00`},
		"batch: header":             {pushingBatch(delayq.Message{Headers: map[string]string{"": ""}}), "header key", `""`},
		"batch: body":               {pushingBatch(delayq.Message{Body: make([]byte, backend.MaxBody+1)}), "body", "16777217 bytes"},

		"body too large": {func(s *scene, ctx context.Context) error {
			_, err := s.Push(ctx, make([]byte, backend.MaxBody+1))
			return err
		}, "body", "16777217 bytes"},

		"cancel: id":       {func(s *scene, ctx context.Context) error { return s.Cancel(ctx, "\xff") }, "id", `\xff`},
		"cancel: id empty": {func(s *scene, ctx context.Context) error { return s.Cancel(ctx, "") }, "id", `""`},
		"reschedule: id": {func(s *scene, ctx context.Context) error {
			return s.Reschedule(ctx, "", time.Now())
		}, "id", `""`},
		"reschedule: year 1": {func(s *scene, ctx context.Context) error {
			return s.Reschedule(ctx, "scheduled", year1)
		}, "due time", "0001"},
		"reschedule: year 300000": {func(s *scene, ctx context.Context) error {
			return s.Reschedule(ctx, "scheduled", year300000)
		}, "due time", "300000"},

		"receive: limit 0":         {receivingBatch(0), "limit", "0"},
		"receive: limit negative":  {receivingBatch(-1), "limit", "-1"},
		"receive: limit too large": {receivingBatch(delayq.MaxBatch + 1), "limit", "10001"},
		"ack: nil": {func(s *scene, ctx context.Context) error {
			return s.AckBatch(ctx, []*delayq.Delivery{s.held, nil})
		}, "delivery", "nil"},
		"ack: of another queue": {func(s *scene, ctx context.Context) error {
			return s.AckBatch(ctx, []*delayq.Delivery{s.held, {ID: "ready"}})
		}, "delivery", "of another queue"},
		"nack: delay negative":    {func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, -time.Second) }, "delay", "-1s"},
		"nack: option nil":        {nacking(nil), "nack option", "nil"},
		"nack: header key empty":  {nacking(delayq.NackHeaders(map[string]string{"": "x"})), "header key", `""`},
		"nack: headers too large": {nacking(delayq.NackHeaders(map[string]string{"x": strings.Repeat("x", backend.MaxHeaders)})), "headers", "bytes"},
		"nack: delay and headers": {func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, -1, delayq.NackHeaders(nil)) }, "delay", "-1ns"},
		"nack: delay too long":    {func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, math.MaxInt64) }, "delay", "2562047h"},
		"extend: 0":               {func(s *scene, ctx context.Context) error { return s.held.Extend(ctx, 0) }, "lease", "0s"},
		"extend: negative":        {func(s *scene, ctx context.Context) error { return s.held.Extend(ctx, -time.Minute) }, "lease", "-1m0s"},
		"extend: too long": {func(s *scene, ctx context.Context) error {
			return s.held.Extend(ctx, backend.MaxLease+1)
		}, "lease", "24h0m0.000000001s"},

		"get: id empty":            {func(s *scene, ctx context.Context) error { _, err := s.Get(ctx, ""); return err }, "id", `""`},
		"get: id too long":         {func(s *scene, ctx context.Context) error { _, err := s.Get(ctx, strings.Repeat("x", 256)); return err }, "id", "256 bytes"},
		"get: id in a batch":       {getting("ready", "a\x00"), "id", `a\x00`},
		"get: too many":            {getting(make([]string, delayq.MaxBatch+1)...), "batch size", "10001"},
		"peek: limit 0":            {peeking("", 0), "limit", "0"},
		"pause for nothing":        {pausing(delayq.PauseFor(0)), "PauseFor", "0s"},
		"pause for less":           {pausing(delayq.PauseFor(-1)), "PauseFor", "-1ns"},
		"pause for too long":       {pausing(delayq.PauseFor(backend.MaxDelay + 1)), "PauseFor", "876000h0m0.000000001s"},
		"pause until 1969":         {pausing(delayq.PauseUntil(before1970)), "due time", "1969-12-31T23:59:59.999999999"},
		"pause until after 2200":   {pausing(delayq.PauseUntil(after2200)), "due time", "2200-01-01T00:00:00.000000001"},
		"pause with two ends":      {pausing(delayq.PauseFor(1), delayq.PauseUntil(time.Now())), "pause", "with PauseFor and PauseUntil"},
		"pause option nil":         {pausing(nil), "pause option", "nil"},
		"peek: limit too large":    {peeking("", delayq.MaxBatch+1), "limit", "10001"},
		"peek: cursor a word":      {peeking("x", 1), "cursor", "x"},
		"peek: cursor of one part": {peeking("1", 1), "cursor", "1"},
		"peek: cursor without ids": {peeking("1.", 1), "cursor", "1."},
		"peek: cursor of ids":      {peeking(".1", 1), "cursor", ".1"},
		"peek: cursor of three":    {peeking("1.2.3", 1), "cursor", "1.2.3"},
		"list: limit 0":            {listing("", 0), "limit", "0"},
		"list: limit negative":     {listing("", -1), "limit", "-1"},
		"list: limit too large":    {listing("", delayq.MaxBatch+1), "limit", "10001"},
		"list: cursor":             {listing("page two", 10), "cursor", "page two"},
		"list: cursor negative":    {listing("-1", 10), "cursor", "-1"},
		"redrive none":             {func(s *scene, ctx context.Context) error { return s.Dead().Redrive(ctx) }, "ids", "none"},
		"redrive: id":              {func(s *scene, ctx context.Context) error { return s.Dead().Redrive(ctx, "dead", "") }, "id", `""`},
		"delete: empty filter":     {deletingWhere(delayq.DeadFilter{}), "DeadFilter", "without fields"},
		"redrive: empty filter": {func(s *scene, ctx context.Context) error {
			_, err := s.Dead().RedriveWhere(ctx, delayq.DeadFilter{})
			return err
		}, "DeadFilter", "without fields"},
		"redrive: header in filter": {func(s *scene, ctx context.Context) error {
			_, err := s.Dead().RedriveWhere(ctx, delayq.DeadFilter{Headers: map[string]string{strings.Repeat("k", 256): "a"}})
			return err
		}, "header key", "kkk"},
		"trim: negative age":   {trimming(-1, 1), "Trim's age", "-1ns"},
		"trim: negative count": {trimming(time.Hour, -1), "Trim's count", "-1"},
		"trim: no bound":       {trimming(0, 0), "Trim", "without a bound"},
		"reschedule after: negative": {func(s *scene, ctx context.Context) error {
			return s.RescheduleAfter(ctx, "scheduled", -1)
		}, "delay", "-1ns"},
		"reschedule after: too long": {func(s *scene, ctx context.Context) error {
			return s.RescheduleAfter(ctx, "scheduled", backend.MaxDelay+1)
		}, "delay", "876000h0m0.000000001s"},
		"reschedule batch: one is bad": {func(s *scene, ctx context.Context) error {
			return s.RescheduleBatch(ctx, []delayq.Move{{ID: "scheduled"}, {ID: "ready", Delay: -1}})
		}, "delay", "-1ns"},
		"cancel batch: one is bad": {func(s *scene, ctx context.Context) error {
			return s.CancelBatch(ctx, []string{"scheduled", ""})
		}, "id", `""`},
		"delete: header in filter": {deletingWhere(delayq.DeadFilter{Headers: map[string]string{"": "a"}}), "header key", `""`},
		"delete none":              {func(s *scene, ctx context.Context) error { return s.Dead().Delete(ctx) }, "ids", "none"},
		"delete: id":               {func(s *scene, ctx context.Context) error { return s.Dead().Delete(ctx, "dead", "a\x00") }, "id", `a\x00`},

		"consume: handler nil":               {func(s *scene, ctx context.Context) error { return s.Consume(ctx, nil) }, "handler", "nil"},
		"consume: option nil":                {consuming(nil), "consume option", "nil"},
		"consume: 0 workers":                 {consuming(delayq.Workers(0)), "Workers", "0"},
		"consume: negative workers":          {consuming(delayq.Workers(-3)), "Workers", "-3"},
		"consume: too many workers":          {consuming(delayq.Workers(100_001)), "Workers", "100001"},
		"consume: negative attempts":         {consuming(delayq.MaxAttempts(-1)), "MaxAttempts", "-1"},
		"consume: too many attempts":         {consuming(delayq.MaxAttempts(1<<30 + 1)), "MaxAttempts", "1073741825"},
		"consume: drain negative":            {consuming(delayq.Drain(-1)), "Drain", "-1ns"},
		"consume: drain too long":            {consuming(delayq.Drain(24*time.Hour + 1)), "Drain", "24h0m0.000000001s"},
		"consume: prefetch negative":         {consuming(delayq.Prefetch(-1)), "Prefetch", "-1"},
		"consume: prefetch too many":         {consuming(delayq.Prefetch(delayq.MaxBatch + 1)), "Prefetch", "10001"},
		"consume: no timeout":                {consuming(delayq.Timeout(0)), "Timeout", "0s"},
		"consume: timeout too long":          {consuming(delayq.Timeout(24*time.Hour + 1)), "Timeout", "24h0m0.000000001s"},
		"consume: rate of zero":              {consuming(delayq.RateLimit(0, 1)), "RateLimit", "0"},
		"consume: rate of NaN":               {consuming(delayq.RateLimit(math.NaN(), 1)), "RateLimit", "NaN"},
		"consume: rate without end":          {consuming(delayq.RateLimit(math.Inf(1), 1)), "RateLimit", "+Inf"},
		"consume: burst of none":             {consuming(delayq.RateLimit(1, 0)), "RateLimit burst", "0"},
		"consume: burst too large":           {consuming(delayq.RateLimit(1, delayq.MaxBatch+1)), "RateLimit burst", "10001"},
		"consume: nil middleware":            {consuming(delayq.Use(nil)), "Use", "nil"},
		"consume: OnDead nil":                {consuming(delayq.OnDead(nil)), "OnDead", "nil"},
		"consume: empty table":               {consuming(delayq.Retry(delayq.Delays{})), "Delays", "none"},
		"consume: negative delay in a table": {consuming(delayq.Retry(delayq.Delays{1, -1})), "Delays", "-1ns"},
		"consume: policy nil":                {consuming(delayq.Retry(nil)), "Retry", "nil"},
		"consume: policy nil pointer":        {consuming(delayq.Retry((*delayq.Backoff)(nil))), "Retry", "nil"},
		"consume: policy by pointer":         {consuming(delayq.Retry(&delayq.Backoff{})), "Backoff.Base", "0s"},
		"backoff: zero":                      {backingOff(delayq.Backoff{}), "Backoff.Base", "0s"},
		"backoff: base negative":             {backingOff(delayq.Exponential(-1, 1)), "Backoff.Base", "-1ns"},
		"backoff: base too long":             {backingOff(delayq.Exponential(math.MaxInt64, math.MaxInt64)), "Backoff.Base", "2562047h"},
		"backoff: max below base":            {backingOff(delayq.Exponential(2, 1)), "Backoff.Max", "1ns"},
		"backoff: max too long":              {backingOff(delayq.Exponential(1, backend.MaxDelay+1)), "Backoff.Max", "876000h"},
		"backoff: factor 0":                  {backingOff(delayq.Backoff{Base: 1, Max: 1}), "Backoff.Factor", "0"},
		"backoff: factor below 1":            {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: .5}), "Backoff.Factor", "0.5"},
		"backoff: factor NaN":                {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: nan}), "Backoff.Factor", "NaN"},
		"backoff: factor infinite":           {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: inf}), "Backoff.Factor", "+Inf"},
		"backoff: factor minus infinite":     {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: -inf}), "Backoff.Factor", "-Inf"},
		"backoff: jitter negative":           {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: 1, Jitter: -.1}), "Backoff.Jitter", "-0.1"},
		"backoff: jitter above 1":            {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: 1, Jitter: 1.1}), "Backoff.Jitter", "1.1"},
		"backoff: jitter infinite":           {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: 1, Jitter: inf}), "Backoff.Jitter", "+Inf"},
		"backoff: jitter NaN":                {backingOff(delayq.Backoff{Base: 1, Max: 1, Factor: 1, Jitter: nan}), "Backoff.Jitter", "NaN"},
	}, func(t *testing.T, tt test) {
		s := newScene(t)
		s.wantUnchanged(t, func() { wantInvalid(t, tt.do(s, t.Context()), tt.what, tt.value) })
	})
}

func getting(ids ...string) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.GetBatch(ctx, ids)
		return err
	}
}

func pausing(opts ...delayq.PauseOption) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error { return s.PauseAll(ctx, opts...) }
}

func peeking(cursor string, limit int) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, _, err := s.Peek(ctx, cursor, limit)
		return err
	}
}

func deletingWhere(f delayq.DeadFilter) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.Dead().DeleteWhere(ctx, f)
		return err
	}
}

func trimming(maxAge time.Duration, maxCount int) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.Dead().Trim(ctx, maxAge, maxCount)
		return err
	}
}

func nacking(opts ...delayq.NackOption) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, 0, opts...) }
}

func receivingBatch(limit int) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, err := s.ReceiveBatch(ctx, limit)
		return err
	}
}

func listing(cursor string, limit int) func(*scene, context.Context) error {
	return func(s *scene, ctx context.Context) error {
		_, _, err := s.Dead().List(ctx, cursor, limit)
		return err
	}
}

func TestHugeBodyIsRefusedUnread(t *testing.T) {
	t.Parallel()
	body := hugeBody(t)
	s := newScene(t)
	s.wantUnchanged(t, func() {
		_, err := s.Push(t.Context(), body)
		wantInvalid(t, err, "body", "2147483648 bytes")
		_, err = s.PushBatch(t.Context(), []delayq.Message{{}, {Body: body}})
		wantInvalid(t, err, "body", "2147483648 bytes")
	})
}

func TestDeliveryOfAnotherQueueIsRefused(t *testing.T) {
	t.Parallel()
	a, b := newScene(t), newScene(t)
	a.wantUnchanged(t, func() {
		b.wantUnchanged(t, func() {
			wantInvalid(t, a.AckBatch(t.Context(), []*delayq.Delivery{a.held, b.held}), "delivery", "another queue")
		})
	})
}

// Values at the limits, to the last byte and nanosecond.
func TestLimitsAreInclusive(t *testing.T) {
	anyBytes := "\x00\xff\xc3\n"
	type test struct {
		do func(*scene, context.Context) error
	}
	queuetest.Cases(t, map[string]test{
		"longest limits": {pushing(delayq.At(backend.LatestDue), delayq.Attempts(1<<30), delayq.HandlerTimeout(24*time.Hour),
			delayq.ExpiresAfter(backend.MaxDelay), delayq.Expires(backend.LatestDue), delayq.DeadLetterExpired())},
		"shortest limits":     {pushing(delayq.Attempts(1), delayq.HandlerTimeout(time.Millisecond), delayq.ExpiresAfter(time.Millisecond), delayq.Expires(backend.EarliestDue))},
		"no limits":           {pushingBatch(delayq.Message{Limits: &delayq.Limits{}})},
		"no delay":            {pushing(delayq.After(0))},
		"longest delay":       {pushing(delayq.After(backend.MaxDelay))},
		"earliest due":        {pushing(delayq.At(backend.EarliestDue))},
		"latest due":          {pushing(delayq.At(backend.LatestDue))},
		"due in another zone": {pushing(delayq.At(backend.EarliestDue.In(time.FixedZone("west", -12*3600))))},
		"longest id":          {pushing(delayq.ID(strings.Repeat("x", 255)))},
		"any id":              {pushing(delayq.ID("{ä} b/*#\u2028\U0001F600"))},
		"longest header key":  {pushing(delayq.Header(strings.Repeat("k", 255), ""))},
		"any header value":    {pushing(delayq.Header("k", anyBytes))},
		"largest headers":     {pushing(delayq.Header("k", strings.Repeat("v", backend.MaxHeaders-backend.HeaderCost-1)))},
		"empty batch": {func(s *scene, ctx context.Context) error {
			ids, err := s.PushBatch(ctx, nil)
			if len(ids) != 0 {
				return fmt.Errorf("ids %q", ids)
			}
			return err
		}},
		"largest body": {func(s *scene, ctx context.Context) error {
			_, err := s.Push(ctx, make([]byte, backend.MaxBody))
			return err
		}},
		"largest limit":         {receivingBatch(delayq.MaxBatch)},
		"get of none":           {getting()},
		"ack of none":           {func(s *scene, ctx context.Context) error { return s.AckBatch(ctx, nil) }},
		"shortest lease":        {func(s *scene, ctx context.Context) error { return s.held.Extend(ctx, backend.MinLease) }},
		"longest lease":         {func(s *scene, ctx context.Context) error { return s.held.Extend(ctx, backend.MaxLease) }},
		"longest nack":          {func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, backend.MaxDelay) }},
		"largest page":          {listing("", delayq.MaxBatch)},
		"cursor behind the end": {listing("18446744073709551615", 1)},
		"consumer": {func(s *scene, ctx context.Context) error {
			ctx, stop := context.WithCancel(ctx)
			stop()
			widest := delayq.Backoff{Base: 1, Max: backend.MaxDelay, Factor: 1, Jitter: 1}
			return s.Consume(ctx, returning(nil),
				delayq.Workers(100_000), delayq.MaxAttempts(0), delayq.MaxAttempts(1<<30),
				delayq.Timeout(time.Millisecond), delayq.Timeout(24*time.Hour), delayq.RateLimit(1e-9, 1), delayq.RateLimit(1e12, delayq.MaxBatch), delayq.Use(),
				delayq.Retry(delayq.Delays{0, backend.MaxDelay}), delayq.Drain(0), delayq.Drain(24*time.Hour), delayq.Prefetch(0), delayq.Prefetch(delayq.MaxBatch), delayq.Retry(widest), delayq.Retry(&widest))
		}},
	}, func(t *testing.T, tt test) {
		must(t, tt.do(newScene(t), t.Context()))
	})
}

func TestBadNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", strings.Repeat("n", 201), "{a}", "a/b", "a b", "a*", "a#", "é", "a\x00", "a\xff", "a\n", "a%", "a,b", "٣", "a?",
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			t.Parallel()
			q, err := delayq.New(t.Context(), name, delayq.InMemory())
			wantInvalid(t, err, "queue name", strings.Trim(fmt.Sprintf("%.60q", name), `"`))
			if q != nil {
				t.Error("a queue beside an error")
			}
		})
	}
	for _, name := range []string{"a", strings.Repeat("n", 200), "Orders-2.eu_west:17"} {
		q, err := delayq.New(t.Context(), name, delayq.InMemory())
		must(t, err)
		must(t, q.Close())
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	type test struct {
		option      delayq.Option
		what, value string
	}
	queuetest.Cases(t, map[string]test{
		"nil":                 {nil, "option", "nil"},
		"backend nil":         {delayq.WithBackend(nil), "WithBackend", "nil"},
		"clock nil":           {delayq.WithClock(nil), "WithClock", "nil"},
		"logger nil":          {delayq.WithLogger(nil), "WithLogger", "nil"},
		"meter provider nil":  {delayq.WithMeterProvider(nil), "WithMeterProvider", "nil"},
		"tracer provider nil": {delayq.WithTracerProvider(nil), "WithTracerProvider", "nil"},
		"propagator nil":      {delayq.WithPropagator(nil), "WithPropagator", "nil"},
		"random nil":          {delayq.WithRandom(nil), "WithRandom", "nil"},
		"no name":             {delayq.Named(""), "Named", `""`},
		"a second name":       {delayq.Named("orders"), "option", "Named"},
		"lease 0":             {delayq.WithLease(0), "WithLease", "0s"},
		"lease negative":      {delayq.WithLease(-time.Second), "WithLease", "-1s"},
		"lease too short":     {delayq.WithLease(time.Millisecond - 1), "WithLease", "999.999µs"},
		"lease too long":      {delayq.WithLease(24*time.Hour + 1), "WithLease", "24h0m0.000000001s"},
		"feature 0":           {delayq.Require(delayq.Cancelling, 0), "feature", "0"},
		"feature unknown":     {delayq.Require(99), "feature", "99"},
		"no messages":         {delayq.WithBackend(memory.New(memory.MaxMessages(0))), "memory.MaxMessages", "0"},
		"messages negative":   {delayq.WithBackend(memory.New(memory.MaxMessages(-1))), "memory.MaxMessages", "-1"},
		"no bytes":            {delayq.WithBackend(memory.New(memory.MaxBytes(0))), "memory.MaxBytes", "0"},
		"bytes negative":      {delayq.WithBackend(memory.New(memory.MaxBytes(-1))), "memory.MaxBytes", "-1"},
	}, func(t *testing.T, tt test) {
		q, err := delayq.New(t.Context(), "orders", tt.option)
		wantInvalid(t, err, tt.what, tt.value)
		if q != nil {
			t.Error("a queue beside an error")
		}
	})
}

func TestBadURLsAreRefused(t *testing.T) {
	const secret = "hunter2"
	type test struct {
		url         string
		sentinel    error
		what, value string
		options     []delayq.Option
	}
	queuetest.Cases(t, map[string]test{
		"unreadable":        {url: "memory://user:" + secret + "@[::1/orders", sentinel: delayq.ErrInvalid, what: "URL", value: "unreadable"},
		"bad escape":        {url: "memory://user:" + secret + "@host/%zz", sentinel: delayq.ErrInvalid, what: "URL", value: "unreadable"},
		"control character": {url: "memory://user:" + secret + "@host/a\x00", sentinel: delayq.ErrInvalid, what: "URL", value: "unreadable"},
		"port":              {url: "redis://user:" + secret + "@host:port/a", sentinel: delayq.ErrInvalid, what: "URL", value: "unreadable"},
		"empty":             {url: "", sentinel: delayq.ErrUnknownScheme},
		"no scheme":         {url: "//user:" + secret + "@host/orders", sentinel: delayq.ErrUnknownScheme},
		"unknown scheme":    {url: "pigeon://user:" + secret + "@loft/orders", sentinel: delayq.ErrUnknownScheme},
		"user in memory":    {url: "memory://user:" + secret + "@/orders", sentinel: delayq.ErrInvalid, what: "memory URL", value: "(hidden)"},
		"no name":           {url: "memory:///", sentinel: delayq.ErrInvalid, what: "queue name", value: `""`},
		"reserved name":     {url: "memory:///a%2Fb", sentinel: delayq.ErrInvalid, what: "queue name", value: "a/b"},
		"unknown parameter": {url: "memory:///a?max=1", sentinel: delayq.ErrInvalid, what: "URL parameter", value: "max"},
		"with a backend": {
			url: "memory:///a", sentinel: delayq.ErrInvalid, what: "option", value: "WithBackend",
			options: []delayq.Option{delayq.WithBackend(memory.New())},
		},
		"in memory": {
			url: "memory:///a", sentinel: delayq.ErrInvalid, what: "option", value: "InMemory",
			options: []delayq.Option{delayq.InMemory()},
		},
		"two names": {
			url: "memory:///a", sentinel: delayq.ErrInvalid, what: "queue name", value: `"b"`,
			options: []delayq.Option{delayq.Named("b")},
		},
		"bad name": {
			url: "memory://", sentinel: delayq.ErrInvalid, what: "queue name", value: `"a/b"`,
			options: []delayq.Option{delayq.Named("a/b")},
		},
		"option": {
			url: "memory:///a", sentinel: delayq.ErrInvalid, what: "WithLease", value: "0s",
			options: []delayq.Option{delayq.WithLease(0)},
		},
	}, func(t *testing.T, tt test) {
		q, err := delayq.Open(t.Context(), tt.url, tt.options...)
		wantIs(t, err, tt.sentinel)
		if tt.what != "" {
			wantInvalid(t, err, tt.what, tt.value)
		} else if !strings.Contains(err.Error(), "forgotten import?") || !strings.Contains(err.Error(), "memory") {
			t.Errorf("error %q does not say what is known", err)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("error %q tells the password", err)
		}
		if q != nil {
			t.Error("a queue beside an error")
		}
	})
}

// A store may promise less than the portable limits, or go by names of its own.
func TestTraitsSetTheLimits(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.traits = func(tr *backend.Traits) {
		tr.MaxDelay, tr.MaxBody, tr.AnyName = time.Minute, 10, true
	}
	q := newQueue(t, s.option())
	ctx := t.Context()

	push(t, q, delayq.After(time.Minute))
	_, err := q.Push(ctx, nil, delayq.After(time.Minute+1))
	wantInvalid(t, err, "delay", "1m0.000000001s")
	_, err = q.Push(ctx, make([]byte, 10))
	must(t, err)
	_, err = q.Push(ctx, make([]byte, 11))
	wantInvalid(t, err, "body", "11 bytes")
	d := receive(t, q)
	wantInvalid(t, d.Nack(ctx, time.Hour), "delay", "1h0m0s")

	foreign, err := delayq.New(ctx, "{their} queue/é", s.option())
	must(t, err)
	must(t, foreign.Close())
	for _, name := range []string{"", strings.Repeat("n", 201)} {
		_, err = delayq.New(ctx, name, s.option())
		wantInvalid(t, err, "queue name", "")
	}
}
