package memory

import "github.com/delayq/delayq/backend"

// getLocked returns the message of an id, or what is known of one that is gone.
func (s *store) getLocked(id string, now int64) (m backend.MessageInfo, err error) {
	slot, ok := s.findLocked(id)
	end := s.windows.end(s.packed)
	switch {
	case ok:
		m = s.infoLocked(slot, now)
	case end > now:
		m = backend.MessageInfo{ID: id, State: backend.StateDone}
	default:
		return m, backend.ErrNotFound
	}
	if end > now {
		m.UniqueUntil = moment(end)
	}
	return m, nil
}

// infoLocked copies a message out, without its window.
func (s *store) infoLocked(slot uint32, now int64) backend.MessageInfo {
	n := s.nodes.at(slot)
	id, headers, body := getRecord(s.arena.bytes(n.rec()))
	m := backend.MessageInfo{ID: id, State: s.stateLocked(slot, now), Headers: headers, Body: body, Attempts: n.attempt()}
	switch m.State {
	case backend.StateInFlight:
		m.Due, m.LeaseUntil = moment(s.held.at(slot).when), moment(s.leases.key(slot).when)
	case backend.StateDead:
		l := s.dead.at(slot)
		m.Due, m.Died, m.Reason = moment(l.due), moment(l.died), l.reason
	default:
		m.Due = moment(s.due.key(slot).when)
	}
	return m
}

func (s *store) stateLocked(slot uint32, now int64) backend.State {
	switch state := s.nodes.at(slot).state(); {
	case state == leased:
		return backend.StateInFlight
	case state == dead:
		return backend.StateDead
	case s.due.key(slot).when <= now:
		return backend.StateReady
	default:
		return backend.StateScheduled
	}
}
