package rabbitmq

import (
	"slices"
	"sync"
)

// links are the connections that handles consume on. Each handle has a channel, and the broker
// bounds the channels of a connection.
type links struct {
	dial func() *link

	mu   sync.Mutex
	all  []*link
	used map[*link]int // number of handles
}

// first returns the connection that always exists.
func (ls *links) first() *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.all[0]
}

// acquire returns a connection with room for one more handle.
func (ls *links) acquire() *link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		if ls.used[l] < l.room() {
			ls.used[l]++
			return l
		}
	}
	l := ls.dial()
	if ls.all[0].life.Err() != nil {
		l.stop()
	}
	ls.all = append(ls.all, l)
	ls.used[l]++
	return l
}

func (ls *links) release(l *link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.used[l]--
}

func (ls *links) stop() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.stop()
	}
}

// close ends all connections.
func (ls *links) close() {
	ls.stop()
	ls.mu.Lock()
	all := slices.Clone(ls.all)
	ls.mu.Unlock()
	for _, l := range all {
		l.close()
	}
}

// overfull reports whether a connection has more handles than room. Its room is known only once it
// is open.
func (ls *links) overfull(l *link) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.used[l] > l.room()
}

// usualChannels is a broker's default channel_max.
const usualChannels = 2047

// room returns how many handles a connection takes: half its channels, since reading dead letters
// and declaring take a channel for a short time.
func (l *link) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.channels == 0 {
		return usualChannels / 2
	}
	return max(l.channels/2, 1)
}
