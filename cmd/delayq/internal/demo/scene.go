package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// A scene is one use of a delay queue.
type scene struct {
	title string
	scale float64          // seconds of the story in one of ours, at speed 1
	needs []delayq.Feature // without which the scene is left out
	play  func(context.Context, *stage) error
}

func scenes() []scene {
	return []scene{
		unpaidOrders.scene(),
		slowMerchants.scene(),
		missingReviews.scene(),
		deadWorker,
		poisonMessage,
		killedProcess,
	}
}

func (r *run) playScenes(ctx context.Context) error {
	r.say.plain(fmt.Sprintf("A delay queue at work on %s. First column: seconds since the start; second: time in the story.", r.where()))
	r.confess(delayq.Cancelling, delayq.CountingScheduled)
	for i, sc := range scenes() {
		s := &stage{run: r, scale: sc.scale * r.Speed, began: time.Now()}
		r.say.heading(fmt.Sprintf("%d. %s", i+1, sc.title), scaleText(s.scale))
		if err := s.playScene(ctx, sc); err != nil {
			return fmt.Errorf("scene %d: %w", i+1, err)
		}
	}
	return nil
}

func scaleText(scale float64) string {
	switch {
	case scale == 1:
		return "(in real time)"
	case scale < 1:
		return fmt.Sprintf("(%.3gx slower than real time)", 1/scale)
	}
	return fmt.Sprintf("(%s pass in a second: %.10gx)", human.Brief(stretched(time.Second, scale)), scale)
}

// A stage is where one scene plays.
type stage struct {
	*run
	scale float64 // seconds of the story in one of ours
	began time.Time
}

func (s *stage) playScene(ctx context.Context, sc scene) error {
	missing, err := s.missing(ctx, sc.needs)
	if err != nil {
		return err
	}
	if missing != "" {
		s.say.plain("left out: " + missing)
		return nil
	}
	return sc.play(ctx, s)
}

// missing says what the backend lacks for a scene, "" when it has all.
func (s *stage) missing(ctx context.Context, needs []delayq.Feature) (string, error) {
	if len(needs) == 0 {
		return "", nil
	}
	q, err := s.openQueue(ctx, delayq.Require(needs...))
	if errors.Is(err, delayq.ErrUnsupported) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return "", q.Close()
}

// real is how long a time of the story takes here.
func (s *stage) real(story time.Duration) time.Duration { return shrunk(story, s.scale) }

// story is the time in the story.
func (s *stage) story() time.Duration { return stretched(time.Since(s.began), s.scale) }

func (s *stage) note(t tone, name, text string) { s.say.event(t, s.story(), s.name(name), text) }

// push pushes a message that is due after a time of the story.
func (s *stage) push(ctx context.Context, name, body string, after time.Duration) error {
	delay := s.real(after)
	s.ledger.push(name, []byte(body), time.Now().Add(delay))
	err := s.names.learn([]string{name}, func() ([]string, error) {
		id, err := s.queue.Push(ctx, []byte(body), s.names.option(name), delayq.After(delay))
		return []string{id}, err
	})
	if err != nil {
		s.ledger.unpush(name)
	}
	return err
}

// A cue makes something happen at a time of the story.
type cue struct {
	at time.Duration
	do func(context.Context) error
}

func (s *stage) perform(ctx context.Context, cues []cue) error {
	slices.SortStableFunc(cues, func(a, b cue) int { return cmp.Compare(a.at, b.at) })
	for _, c := range cues {
		if err := sleepUntil(ctx, s.began.Add(s.real(c.at))); err != nil {
			return err
		}
		if err := c.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// confess says what cannot be shown, or not be checked, for want of a feature.
func (r *run) confess(features ...delayq.Feature) {
	for _, f := range features {
		if !r.queue.Supports(f) {
			r.say.plain(lacking[f])
		}
	}
}

var lacking = map[delayq.Feature]string{
	delayq.Cancelling:        "It cannot cancel: a timeout that was answered in time is handed out all the same, and finds that there is nothing to do.",
	delayq.CountingScheduled: "It cannot count all messages: whether somebody else uses the queue, and whether anything is left at the end, cannot be checked.",
}
