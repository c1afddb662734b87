package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	_ "github.com/delayq/delayq/sqlite" // the scene has a file of its own
)

// killedProcess kills a process that pushes and handles messages. They are in a file, so nothing
// but the process is lost.
var killedProcess = scene{
	title: "A process is killed with -9, and the next goes on with its SQLite file",
	scale: 1,
	play:  playKilledProcess,
}

// reminders are when the messages of the scene are due. The process dies with the first in hand.
var reminders = []time.Duration{150 * time.Millisecond, 500 * time.Millisecond, 700 * time.Millisecond}

func playKilledProcess(ctx context.Context, s *stage) (err error) {
	if s.Self == nil {
		s.say.plain("left out: there is no program to start")
		return nil
	}
	dir, err := os.MkdirTemp("", "delayq-demo-")
	if err != nil {
		s.say.plain("left out: " + err.Error())
		return nil
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	here := *s.run
	here.URL = (&url.URL{Scheme: "sqlite", Path: filepath.ToSlash(filepath.Join(dir, "demo.db")) + "/reminders"}).String()
	s = &stage{run: &here, scale: s.scale, began: s.began}
	here.names = &names{areIDs: true}
	// The lease is as long at any speed: the other process may be slow to take its message.
	if err := s.killInMidWork(ctx, doomedLease); err != nil {
		return err
	}
	if here.queue, err = s.openQueue(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.queue.Close()) }()
	s.note(calm, "demo.db", fmt.Sprintf("process %d opens the file", os.Getpid()))
	remind := func(d *delayq.Delivery, name string, late time.Duration) error {
		if d.Attempt > 1 {
			s.note(good, name, fmt.Sprintf("sent as attempt %d, when the dead process' lease has ended", d.Attempt))
		} else {
			s.note(good, name, "sent"+lateText(late))
		}
		return nil
	}
	if err := s.serve(ctx, s.attend(remind), func(context.Context) error { return nil }); err != nil {
		return err
	}
	return s.countLeft(ctx)
}

// reminder is a message as the two processes tell each other of it.
type reminder struct {
	ID      string    `json:"id"`
	Body    string    `json:"body"`
	Due     time.Time `json:"due,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
}

// killInMidWork runs a process that pushes the messages and takes the first one, and kills it then.
func (s *stage) killInMidWork(ctx context.Context, lease time.Duration) (err error) {
	doomed := s.Self(ctx, DoomedCommand, s.URL, lease.String())
	var said bytes.Buffer
	doomed.Stderr = &said
	in, err := doomed.StdinPipe()
	if err != nil {
		return err
	}
	out, err := doomed.StdoutPipe()
	if err != nil {
		return err
	}
	if err := doomed.Start(); err != nil {
		return fmt.Errorf("starting the process to kill: %w", err)
	}
	defer func() {
		_ = doomed.Process.Kill() // kill -9; it may have ended by itself
		var killed *exec.ExitError
		if ended := doomed.Wait(); err != nil && errors.As(ended, &killed) {
			err = fmt.Errorf("the process to kill: %w: %w: %s", err, killed, bytes.TrimSpace(said.Bytes()))
		}
	}()
	return s.tellDoomed(json.NewEncoder(in), json.NewDecoder(out), doomed.Process.Pid, lease)
}

func (s *stage) tellDoomed(in *json.Encoder, out *json.Decoder, pid int, lease time.Duration) error {
	var ready, stored, taken reminder
	if err := out.Decode(&ready); err != nil {
		return err
	}
	all := make([]reminder, len(reminders))
	for i, after := range reminders {
		all[i] = reminder{ID: fmt.Sprintf("%sreminder-%d", s.tag, i+1), Body: "call the dentist", Due: time.Now().Add(s.real(after))}
		s.ledger.push(all[i].ID, []byte(all[i].Body), all[i].Due)
	}
	if err := in.Encode(all); err != nil {
		return err
	}
	if err := out.Decode(&stored); err != nil {
		return err
	}
	s.note(calm, "demo.db", fmt.Sprintf("process %d pushes %s into it", pid, human.Count(len(all), "reminder")))
	if err := out.Decode(&taken); err != nil {
		return err
	}
	name, _ := s.take(&delayq.Delivery{ID: taken.ID, Body: []byte(taken.Body)})
	s.ledger.died(name, lease)
	s.note(trouble, name, fmt.Sprintf("process %d takes it as attempt %d, and is killed with -9", pid, taken.Attempt))
	return nil
}

// DoomedCommand is the hidden command that runs Doomed, with the queue's URL and the lease.
const DoomedCommand = "__demo-doomed"

// Doomed is the part of the process that is killed: it pushes what it reads, takes one message and
// settles nothing. It returns when its input ends.
func Doomed(ctx context.Context, queueURL string, lease time.Duration, in io.Reader, out io.Writer) (err error) {
	q, err := delayq.Open(ctx, queueURL, delayq.WithLease(lease))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	say, hear := json.NewEncoder(out), json.NewDecoder(in)
	if err := say.Encode(reminder{}); err != nil {
		return err
	}
	var all []reminder
	if err := hear.Decode(&all); err != nil {
		return err
	}
	batch := make([]delayq.Message, len(all))
	for i, r := range all {
		batch[i] = delayq.Message{ID: r.ID, Body: []byte(r.Body), Due: r.Due}
	}
	if _, err := q.PushBatch(ctx, batch); err != nil {
		return err
	}
	if err := say.Encode(reminder{}); err != nil {
		return err
	}
	d, err := q.Receive(ctx)
	if err != nil {
		return err
	}
	if err := say.Encode(reminder{ID: d.ID, Body: string(d.Body), Attempt: d.Attempt}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}
