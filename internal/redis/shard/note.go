package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
)

// A generation is a number of shards that the queue has or had. Messages with new ids go to the newest.
// The others end by themselves when their last message goes. Their numbers rise. Generation 0 is the
// store of a queue without shards.
type generation struct {
	number int64
	shards []*shard
}

// A note is a list of generations, the oldest first, as number:shards,number:shards.
func parseNote(note string) (gens []generation, sizes []int, err error) {
	for part := range strings.SplitSeq(note, ",") {
		number, size, _ := strings.Cut(part, ":")
		g, err := strconv.ParseInt(number, 10, 64)
		n, err2 := strconv.Atoi(size)
		if err != nil || err2 != nil || g < 0 || Valid("", n) != nil || len(gens) > 0 && gens[len(gens)-1].number >= g {
			return nil, nil, fmt.Errorf("the note %q of the queue's shards is not readable", note)
		}
		gens, sizes = append(gens, generation{number: g}), append(sizes, n)
	}
	return gens, sizes, nil
}

func noteOf(gens []generation) string {
	parts := make([]string, len(gens))
	for i, g := range gens {
		parts[i] = strconv.FormatInt(g.number, 10) + ":" + strconv.Itoa(len(g.shards))
	}
	return strings.Join(parts, ",")
}

// begin splits a queue into n shards, if it has none yet, and takes over its note. The first shards have the
// queue's pause.
func (q *Queue) begin(ctx context.Context, n int) error {
	first := q.next(n)
	note, err := q.held(ctx, first, func(pause string) (string, error) {
		return q.base.FirstNote(ctx, noteOf([]generation{first}), pause)
	})
	if err != nil {
		return err
	}
	gens, sizes, err := parseNote(note)
	if err != nil {
		return err
	}
	q.take(gens, sizes)
	return q.release(ctx, first, note)
}

// next returns a new generation of n shards. Its number is greater than the others, and none of an earlier queue of the
// name, whose shards may refuse pushes, or of a note that a failover has lost.
func (q *Queue) next(n int) generation {
	gens := q.generations()
	number := numberFrom(max(time.Now().UnixMilli(), gens[len(gens)-1].number+1), gens)
	return generation{number, q.shardsOf(number, n)}
}

// numberFrom returns the number of a new generation: the first from n on whose leases have a mark of their own.
func numberFrom(n int64, gens []generation) int64 {
	taken := func(g generation) bool { return g.mark() == byte(n) }
	for byte(n) == 0 || slices.ContainsFunc(gens, taken) { // 0 is the mark of generation 0, which may be found later
		n++
	}
	return n
}

// generations returns those that are known, the oldest first.
func (q *Queue) generations() []generation {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gens
}

// forgotten is how long the shards of a generation that has ended refuse pushes. All programs know the note of
// later by then.
const forgotten = 24 * time.Hour

// readAgain is for how long a handle without a worker goes by a note that it has read. A failover may have lost it:
// then other programs know none, or another, until this handle writes it again.
var readAgain = time.Minute

// goesBy is for how long pushes go by a note that cannot be read again: far less than forgotten.
const goesBy = time.Hour

// lookAgain is after how long pushes look for a note that could not be read.
const lookAgain = time.Second

// settled is how long a generation refuses pushes before it ends. By then the replicas of its masters know that
// it does: a failover does not take that back.
var settled = 15 * time.Second

// upToDate reads the note where it was read long ago.
func (q *Queue) upToDate(ctx context.Context) error {
	q.mu.Lock()
	recent := time.Since(q.read) < readAgain
	q.mu.Unlock()
	if recent {
		return nil
	}
	return q.refresh(ctx)
}

// beforePush is upToDate for pushes. Those to other masters go on while that of the note does not
// reply. A newer generation may be there then: each known one that has ended refuses new ids.
func (q *Queue) beforePush(ctx context.Context) error {
	q.mu.Lock()
	age, missed := time.Since(q.read), !q.unread.IsZero()
	if missed && age < goesBy {
		q.lookLocked()
	}
	q.mu.Unlock()
	switch {
	case age < readAgain, missed && age < goesBy:
		return nil
	case age >= goesBy:
		return q.refresh(ctx)
	default:
		return q.tryRefresh(ctx)
	}
}

// tryRefresh is refresh, and returns nil where the note cannot be read soon.
func (q *Queue) tryRefresh(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	note, err := q.base.Note(short)
	if err == nil {
		err = q.adopt(short, note)
	}
	if err == nil || !errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unread = time.Now()
	return nil
}

// lookLocked has the note read that could not be read, once in a while. No push waits for that.
func (q *Queue) lookLocked() {
	if !q.busy && time.Since(q.unread) >= lookAgain {
		q.unread, q.busy = time.Now(), true
		q.Calls.Go(q.maintainOnce)
	}
}

// plain returns the store of a queue without shards, or nil. While the note was never read, the
// queue may have shards.
func (q *Queue) plain(ctx context.Context) (*store.Store, error) {
	if q.whole() == nil {
		return nil, nil
	}
	err := q.upToDate(ctx)
	q.mu.Lock()
	known := !q.read.IsZero()
	q.mu.Unlock()
	if known {
		err = nil // the store gives the call an error too
	}
	return q.whole(), err
}

// refresh reads the note.
func (q *Queue) refresh(ctx context.Context) error {
	note, err := q.base.Note(ctx)
	if err != nil {
		return err
	}
	return q.adopt(ctx, note)
}

// adopt takes over a note. Where a failover has lost the newest one, generations are missing that have
// messages, or that are newer than all others: they are added to it.
func (q *Queue) adopt(ctx context.Context, note string) (err error) {
	if note == "" && q.whole() != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.read, q.unread = time.Now(), time.Time{}
		return nil
	}
	for {
		var gens []generation
		var sizes []int
		if note != "" {
			if gens, sizes, err = parseNote(note); err != nil {
				return err
			}
		}
		missing, err := q.missing(ctx, gens)
		if err != nil {
			return err
		}
		if missing == nil {
			q.take(gens, sizes)
			return nil
		}
		for i := range gens {
			gens[i].shards = make([]*shard, sizes[i]) // for their number alone
		}
		gens = append(gens, missing...)
		slices.SortFunc(gens, func(a, b generation) int { return cmp.Compare(a.number, b.number) })
		if note, err = q.base.ChangeNote(ctx, note, noteOf(gens), store.AnyPause); err != nil {
			return err
		}
	}
}

// missing returns the known generations that a note should have, and has not.
func (q *Queue) missing(ctx context.Context, noted []generation) (missing []generation, err error) {
	for _, g := range q.generations() {
		if slices.ContainsFunc(noted, func(n generation) bool { return n.number == g.number }) {
			continue
		}
		if len(noted) > 0 && noted[len(noted)-1].number > g.number {
			if _, err := q.endPushes(ctx, g, forgotten); err != nil { // programs may know it that do not know the note
				return nil, err
			}
			empty, err := g.empty(ctx)
			if err != nil {
				return nil, err
			}
			if empty { // another program has ended it
				continue
			}
		}
		missing = append(missing, g)
	}
	return missing, nil
}

func (g generation) empty(ctx context.Context) (bool, error) {
	for _, s := range g.shards {
		if empty, err := s.Empty(ctx); err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// take makes the generations those of the queue.
func (q *Queue) take(gens []generation, sizes []int) {
	listed := func(in []generation, number int64) int {
		return slices.IndexFunc(in, func(g generation) bool { return g.number == number })
	}
	var added, ended []*shard
	q.mu.Lock()
	if n := len(q.gens); n > 0 && q.gens[n-1].number > gens[len(gens)-1].number { // another call has read it later
		q.mu.Unlock()
		return
	}
	for i := range gens {
		if at := listed(q.gens, gens[i].number); at >= 0 {
			gens[i] = q.gens[at]
			continue
		}
		gens[i].shards = q.shardsOf(gens[i].number, sizes[i])
		added = append(added, gens[i].shards...)
	}
	for _, g := range q.gens {
		if listed(gens, g.number) < 0 && g.number > 0 { // the queue's own channel stays
			ended = append(ended, g.shards...)
		}
	}
	q.gens, q.read, q.unread = gens, time.Now(), time.Time{}
	if q.split.IsZero() && len(gens) > 1 {
		q.split = q.read
	}
	q.mu.Unlock()
	for _, s := range added {
		q.Follow(s.Channel())
	}
	for _, s := range ended {
		q.Unfollow(s.Channel())
	}
}

func (q *Queue) shardsOf(number int64, n int) (shards []*shard) {
	if number == 0 {
		return []*shard{{Store: q.base}}
	}
	for k, tag := range Tags(q.name+"/"+strconv.FormatInt(number, 10), n) {
		shards = append(shards, &shard{Store: store.New(q.stores, tag, q.given), position: position{number, k}})
	}
	return shards
}

// maintain reads the note, and ends generations that have no messages any more. Any program that has the
// queue open does so, once in a while.
func (q *Queue) maintain(ctx context.Context) error {
	if err := q.refresh(ctx); err != nil {
		return err
	}
	gens := q.generations()
	for _, g := range gens[:len(gens)-1] {
		since, err := q.endPushes(ctx, g, 0)
		if err != nil {
			return err
		}
		empty, err := g.empty(ctx)
		if err != nil {
			return err
		}
		if empty && since >= settled { // no message can come to it any more
			return q.end(ctx, gens, g)
		}
	}
	return nil
}

// endPushes has the shards of a generation that is not the newest refuse new ids, and forget that after a time, or
// never for 0. It returns for how long all have refused them: a failover may make one take them again. For generation 0
// the note itself does.
func (q *Queue) endPushes(ctx context.Context, g generation, forget time.Duration) (since time.Duration, err error) {
	if g.number == 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		return time.Since(q.split), nil
	}
	times, err := all(g.shards, func(_ int, s *store.Store) (time.Duration, error) { return s.EndPushes(ctx, forget) })
	return slices.Min(times), err
}

// end takes a generation out of the note, and ends the pauses of its shards, which nothing would find later: before,
// since this program may end half-way, and after, since another may have paused them meanwhile.
func (q *Queue) end(ctx context.Context, gens []generation, ended generation) error {
	resume := func() error {
		if ended.number == 0 {
			return nil // the queue's own store keeps the pause
		}
		return ended.each(func(s *store.Store) error { return s.ResumeAll(ctx) })
	}
	if err := resume(); err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(gens), func(g generation) bool { return g.number == ended.number })
	note, err := q.base.ChangeNote(ctx, noteOf(gens), noteOf(rest), store.AnyPause)
	if err != nil {
		return err
	}
	if note == noteOf(rest) && ended.number > 0 {
		_, forget := q.endPushes(ctx, ended, forgotten)
		if err := errors.Join(resume(), forget); err != nil {
			return err
		}
	}
	return q.adopt(ctx, note)
}

// mostGenerations bounds how many a queue has at a time: each is asked for ids that are not in the others.
const mostGenerations = 8

// newShards bounds how long new shards of a queue without a pause are paused while they are made known.
const newShards = 10 * time.Second

// Reshard has messages with new ids go to n shards. Those that are there stay where they are, and their
// shards end with the last of them.
func (q *Queue) Reshard(ctx context.Context, n int) error {
	if err := Valid("Reshard", n); err != nil {
		return err
	}
	if err := q.maintain(ctx); err != nil {
		return err
	}
	if q.whole() != nil {
		if n == 1 {
			return nil
		}
		if err := q.begin(ctx, n); err != nil {
			return err
		}
	}
	for {
		gens := q.generations()
		newest := gens[len(gens)-1]
		if newest.number > 0 && len(newest.shards) == n {
			refuses, err := newest.refuses(ctx)
			if err != nil {
				return err
			}
			if !refuses {
				return q.maintain(ctx)
			}
		}
		if len(gens) >= mostGenerations {
			return backend.Invalid("number of generations of shards", len(gens)+1, fmt.Sprintf("up to %d: wait until the messages of one are gone", mostGenerations))
		}
		next := q.next(n)
		want := noteOf(append(slices.Clone(gens), next))
		note, err := q.held(ctx, next, func(pause string) (string, error) {
			return q.base.ChangeNote(ctx, noteOf(gens), want, pause)
		})
		if err != nil {
			return err
		}
		if err := q.adopt(ctx, note); err != nil {
			return err
		}
		err = q.release(ctx, next, note)
		if note == want {
			return errors.Join(err, q.maintain(ctx))
		}
		if err != nil {
			return err
		}
	}
}

// refuses reports whether a shard of the newest generation takes no new ids, since a failover has lost the note of a
// newer one.
func (g generation) refuses(ctx context.Context) (bool, error) {
	ended, err := all(g.shards, func(_ int, s *store.Store) (bool, error) { return s.Split(ctx) })
	return slices.Contains(ended, true), err
}

// held gives new shards that are not in the note yet the queue's pause, or a short one, and has them noted while
// the queue has that pause. So nothing is handed out from them before, nor while the pause lasts if this program ends.
// Where they cannot be in the note after an error, it takes their pauses back: nothing else would find them.
func (q *Queue) held(ctx context.Context, g generation, change func(pause string) (note string, err error)) (note string, err error) {
	noted := false // perhaps
	defer func() {
		if err != nil && !noted {
			q.discard(ctx, g)
		}
	}()
	for {
		pause, err := q.base.PauseText(ctx)
		if err != nil {
			return "", err
		}
		p := backend.Pause{Until: script.MS(pause)}
		if pause == "" {
			p.For = newShards
		}
		if err := g.each(func(s *store.Store) error { return s.FirstPause(ctx, p) }); err != nil {
			return "", err
		}
		note, err := change(pause)
		noted = errors.Is(err, backend.ErrOutcomeUnknown) || errors.Is(err, backend.ErrUnconfirmed)
		if err != nil || note != store.PauseChanged {
			return note, err
		}
	}
}

// discardWithin bounds how long the pauses of shards that are not to be are taken back.
const discardWithin = 2 * time.Second

// discard ends the pauses of shards that are in no note, as far as it can.
func (q *Queue) discard(ctx context.Context, g generation) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardWithin)
	defer cancel()
	if err := g.each(func(s *store.Store) error { return s.AfterFirstPause(ctx, resumed) }); err != nil {
		q.Log.Warn("delayq: shards could not be made, and what says that they are paused may stay", "err", err)
	}
}

// release gives new shards the queue's pause, or none. Another program may have been faster, so that the note has
// others; then these are no shards.
//
// PauseAll and ResumeAll begin with the queue's own store. A change that is not seen there comes to
// the shards later, or has come to them meanwhile: then they keep it, also where this program is
// slow, or ends here.
func (q *Queue) release(ctx context.Context, g generation, note string) error {
	p := resumed
	if slices.Contains(strings.Split(note, ","), noteOf([]generation{g})) {
		pause, err := q.base.PauseText(ctx)
		if err != nil {
			return err
		}
		if pause != "" {
			p.Until = script.MS(pause)
		}
	}
	return g.each(func(s *store.Store) error { return s.AfterFirstPause(ctx, p) })
}

func (g generation) each(do func(s *store.Store) error) error {
	_, err := all(g.shards, func(_ int, s *store.Store) (struct{}, error) {
		return struct{}{}, do(s)
	})
	return err
}

// Remove deletes what says that the queue has shards.
func (q *Queue) Remove(ctx context.Context) error {
	for _, g := range q.generations() {
		if g.number == 0 {
			continue
		}
		for _, s := range g.shards {
			if err := s.AllowPushes(ctx); err != nil {
				return err
			}
		}
	}
	return q.base.AllowPushes(ctx)
}
