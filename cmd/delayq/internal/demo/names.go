package demo

import (
	"sync"

	"github.com/delayq/delayq"
)

// names are what the demo calls its messages. They are the ids too, unless the store makes those.
type names struct {
	areIDs bool

	pushing sync.RWMutex // read-locked during a push

	mu    sync.Mutex
	ids   map[string]string // by name
	names map[string]string // by id
}

// option pushes a message under its name, where it may.
func (n *names) option(name string) delayq.PushOption {
	return func(m *delayq.Message) error {
		if n.areIDs {
			m.ID = name
		}
		return nil
	}
}

// unnamed returns the messages as they may be pushed.
func (n *names) unnamed(batch []delayq.Message) []delayq.Message {
	if n.areIDs {
		return batch
	}
	out := make([]delayq.Message, len(batch))
	for i, m := range batch {
		m.ID = ""
		out[i] = m
	}
	return out
}

// learn pushes messages and notes the ids that they got; "" is one that was refused.
func (n *names) learn(names []string, push func() (ids []string, err error)) error {
	n.pushing.RLock()
	defer n.pushing.RUnlock()
	ids, err := push()
	if n.areIDs {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, id := range ids {
		if id != "" {
			n.ids[names[i]], n.names[id] = id, names[i]
		}
	}
	return err
}

// id returns the id of a message of that name.
func (n *names) id(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.ids[name]; ok {
		return id
	}
	return name
}

// of returns the name of a message; of somebody else's, its id. A message may come before its push has
// returned: then it waits for that.
func (n *names) of(id string) string {
	if n.areIDs {
		return id
	}
	if name, ok := n.known(id); ok {
		return name
	}
	n.pushing.Lock()
	defer n.pushing.Unlock()
	if name, ok := n.known(id); ok {
		return name
	}
	return id
}

func (n *names) known(id string) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok = n.names[id]
	return name, ok
}
