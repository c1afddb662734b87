package redisson

import (
	"context"
	"errors"
	"fmt"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/queue"
)

var (
	_ admin.Examiner      = (*Backend)(nil)
	_ admin.QueueExaminer = (*Backend)(nil)
)

// Examine is as in admin.Examiner: each server's version, role, eviction, persistence and clock.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	return queue.Examine(ctx, b.queues)
}

// ExamineQueue is as in backend.QueueExaminer: whether the keys are the queue's own, and whether
// all readers can read its messages and those that a push writes, and whether it is paused. Of a
// queue that only this package uses it tells the first and the last alone.
func (b *Backend) ExamineQueue(ctx context.Context, name string) ([]admin.Finding, error) {
	s, err := b.direct(name)
	if err != nil {
		return nil, err
	}
	reply, err := s.Run(ctx, typesScript)
	if err != nil {
		return nil, err
	}
	wrong, _ := reply.(string)
	var wrongTypeError *backend.InvalidError
	if errors.As(s.wrongTypeError(wrong), &wrongTypeError) {
		return []admin.Finding{{Severity: admin.Problem, About: "keys", Text: wrongTypeError.Error(), Remedy: "give the queue another name, or a prefix"}}, nil
	}
	found, err := queue.ExamineQueue(ctx, b.queues, name)
	if err != nil || s.envelopes() {
		return found, err
	}
	r, err := b.Inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	waiting, _, err := b.Pending(ctx, name, "", examinedMessages)
	if err != nil {
		return nil, err
	}
	return append(found, s.findFormat(r.Formats), s.findCodec(waiting)), nil
}

// examinedMessages is how many bodies are looked at.
const examinedMessages = 100

// others are the releases of Redisson that stop at a member of a layout.
var others = map[MemberFormat]string{V1: "3.21.1 and newer", V2: "3.21.0 and older"}

func (s *store) findFormat(formats map[MemberFormat]int) admin.Finding {
	f := admin.Finding{About: "member format"}
	switch {
	case formats[V1] > 0 && formats[V2] > 0:
		f.Severity = admin.Warning
		f.Text = fmt.Sprintf("%d members of V1 and %d of V2 wait in the queue: transfers of Redisson stop at those of the other layout", formats[V1], formats[V2])
		f.Remedy = "bring all Java processes to one side of Redisson 3.21.1, push from here with format=both, and keep a handle open meanwhile"
	case s.format == Both:
		f.Text = "a push writes members of the layout Both, which every version of Redisson reads"
	default:
		f.Severity = admin.Note
		if s.force {
			f.Severity = admin.Warning
		}
		f.Text = fmt.Sprintf("a push writes members of %v: a transfer of Redisson %s stops at the first of them, and its own messages wait behind", s.format, others[s.format])
		f.Remedy = "leave format out of the URL, or see that no such Java process reads the queue"
	}
	return f
}

// findCodec judges bodies by their first bytes.
func (s *store) findCodec(waiting []Pending) admin.Finding {
	unread, suspect := 0, ""
	for _, p := range waiting {
		m, err := ParseMember(p.Member)
		if err != nil {
			continue
		}
		if p.Err != nil {
			unread++
		}
		if codec := writtenBy(m.Payload); s.codec == String && codec != "" {
			suspect = codec
		}
	}
	f := admin.Finding{About: "codec", Text: fmt.Sprintf("nothing speaks against codec %s, by the first %d messages that wait", s.codec.Name(), len(waiting))}
	const remedy = "give the queue the codec that it has in Java"
	if unread > 0 {
		return admin.Finding{Severity: admin.Warning, About: "codec", Remedy: remedy, Text: fmt.Sprintf(
			"codec %s does not read %d of the first %d messages that wait: a worker here makes them dead letters", s.codec.Name(), unread, len(waiting))}
	} else if suspect != "" {
		return admin.Finding{Severity: admin.Warning, About: "codec", Remedy: remedy, Text: fmt.Sprintf(
			"messages begin as those do that Java writes with %s, while codec here is %s", suspect, s.codec.Name())}
	}
	return f
}
