package dashboard

import (
	"crypto/rand"
	"sync"
	"time"
)

const (
	noticesKept = 500
	noticesFor  = time.Minute
)

// notices are the outcomes of changes, for the page that follows. They are kept here so that no
// text in a URL is shown as ours.
type notices struct {
	mu    sync.Mutex
	texts map[string]notice
}

type notice struct {
	text string
	at   time.Time
}

func (n *notices) add(text string) (key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.texts == nil || len(n.texts) >= noticesKept {
		n.texts = make(map[string]notice)
	}
	key = rand.Text()
	n.texts[key] = notice{text, time.Now()}
	return key
}

func (n *notices) get(key string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.texts[key]; time.Since(t.at) < noticesFor {
		return t.text
	}
	return ""
}
