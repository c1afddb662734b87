package wire

import (
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

// Message is a message that is pushed.
type Message struct {
	ID string `json:"id,omitempty"`
	Content
	Due             *time.Time `json:"due,omitempty"`
	After           Duration   `json:"after,omitempty"`
	Spread          Duration   `json:"spread,omitempty"`
	UniqueFor       Duration   `json:"unique_for,omitempty"`
	Replace         bool       `json:"replace,omitempty"`
	ReplaceInFlight bool       `json:"replace_after_in_flight,omitempty"`
	MaxWait         Duration   `json:"max_wait,omitempty"`
	Limits          *Limits    `json:"limits,omitempty"`
}

// Limits are the limits of a message.
type Limits struct {
	Attempts          int        `json:"attempts,omitempty"`
	HandlerTimeout    Duration   `json:"handler_timeout,omitempty"`
	ExpiresAfter      Duration   `json:"expires_after,omitempty"`
	Expires           *time.Time `json:"expires,omitempty"`
	DeadLetterExpired bool       `json:"dead_letter_expired,omitempty"`
}

// LimitsOf returns limits as JSON has them, nil for none.
func LimitsOf(l *backend.Limits) *Limits {
	if l == nil {
		return nil
	}
	return &Limits{l.Attempts, Duration(l.HandlerTimeout), Duration(l.ExpiresAfter), Time(l.Expires), l.DeadLetterExpired}
}

func (l *Limits) read() *backend.Limits {
	if l == nil {
		return nil
	}
	return &backend.Limits{
		Attempts: l.Attempts, HandlerTimeout: time.Duration(l.HandlerTimeout), ExpiresAfter: time.Duration(l.ExpiresAfter),
		Expires: At(l.Expires), DeadLetterExpired: l.DeadLetterExpired,
	}
}

// MessageOf returns a message as JSON has it.
func MessageOf(m backend.Message) Message {
	return Message{
		ID: m.ID, Content: ContentOf(m.Body, m.Headers), Due: Time(m.Due), After: Duration(m.Delay), Spread: Duration(m.Spread),
		UniqueFor: Duration(m.UniqueFor), Replace: m.Replace, ReplaceInFlight: m.AfterInFlight, MaxWait: Duration(m.MaxWait),
		Limits: LimitsOf(m.Limits),
	}
}

// Read is the inverse of MessageOf.
func (m *Message) Read() (backend.Message, error) {
	body, headers, err := m.Content.Read()
	return backend.Message{
		ID: m.ID, Body: body, Headers: headers, Due: At(m.Due), Delay: time.Duration(m.After), Spread: time.Duration(m.Spread),
		UniqueFor: time.Duration(m.UniqueFor), Replace: m.Replace, AfterInFlight: m.ReplaceInFlight, MaxWait: time.Duration(m.MaxWait),
		Limits: m.Limits.read(),
	}, err
}

// Delivery is a message that was received.
type Delivery struct {
	ID string `json:"id"`
	Content
	Due        *time.Time `json:"due,omitempty"`
	Attempt    int        `json:"attempt"`
	Lease      string     `json:"lease"`
	LeaseUntil *time.Time `json:"lease_until"`
	Limits     *Limits    `json:"limits,omitempty"`
}

// DeliveryOf returns a delivery as JSON has it.
func DeliveryOf(d backend.Delivery, limits *backend.Limits) Delivery {
	return Delivery{
		ID: d.ID, Content: ContentOf(d.Body, d.Headers), Due: Time(d.Due), Attempt: d.Attempt,
		Lease: Lease(d.Lease()), LeaseUntil: Time(d.Until), Limits: LimitsOf(limits),
	}
}

// Read is the inverse of DeliveryOf.
func (d *Delivery) Read() (backend.Delivery, error) {
	body, headers, err := d.Content.Read()
	if err != nil {
		return backend.Delivery{}, err
	}
	l, err := ReadLease(d.Lease)
	return backend.Delivery{
		ID: d.ID, Body: body, Headers: headers, Due: At(d.Due), Attempt: d.Attempt, Token: l.Token, Until: At(d.LeaseUntil),
	}, err
}

// Info is a message as the queue shows it.
type Info struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Content
	Due          *time.Time `json:"due,omitempty"`
	Attempts     int        `json:"attempts"`
	LeaseUntil   *time.Time `json:"lease_until,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	ReasonBase64 []byte     `json:"reason_base64,omitempty"`
	Died         *time.Time `json:"died,omitempty"`
	UniqueUntil  *time.Time `json:"unique_until,omitempty"`
	Error        string     `json:"error,omitempty"`
	Limits       *Limits    `json:"limits,omitempty"`
}

// InfoOf returns a message as JSON has it.
func InfoOf(m backend.MessageInfo, limits *backend.Limits) Info {
	i := Info{
		ID: m.ID, State: m.State.String(), Content: ContentOf(m.Body, m.Headers), Due: Time(m.Due), Attempts: m.Attempts,
		LeaseUntil: Time(m.LeaseUntil), Died: Time(m.Died), UniqueUntil: Time(m.UniqueUntil), Limits: LimitsOf(limits),
	}
	i.Reason, i.ReasonBase64 = TextOrBytes(m.Reason)
	if m.Err != nil {
		i.Error = m.Err.Error()
	}
	return i
}

// Read is the inverse of InfoOf.
func (i *Info) Read() (backend.MessageInfo, error) {
	body, headers, err := i.Content.Read()
	m := backend.MessageInfo{
		ID: i.ID, State: states[i.State], Body: body, Headers: headers, Due: At(i.Due), Attempts: i.Attempts,
		LeaseUntil: At(i.LeaseUntil), Reason: i.Reason, Died: At(i.Died), UniqueUntil: At(i.UniqueUntil),
	}
	if i.ReasonBase64 != nil {
		m.Reason = string(i.ReasonBase64)
	}
	if i.Error != "" {
		m.Err = errors.New(i.Error)
	}
	return m, err
}

var states = func() map[string]backend.State {
	byName := make(map[string]backend.State)
	for s := backend.StateScheduled; s <= backend.StateDone; s++ {
		byName[s.String()] = s
	}
	return byName
}()
