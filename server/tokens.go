package server

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/delayq/delayq/backend"
)

// Right is what a token may do with a queue.
type Right string

// The rights. Admin includes the others.
const (
	Push    Right = "push"    // push, cancel, reschedule
	Consume Right = "consume" // receive, ack, nack, release, extend, dead
	Read    Right = "read"    // get, peek, stats, list dead letters
	Admin   Right = "admin"   // redrive, delete and trim dead letters, purge, pause, resume
)

var rights = []Right{Push, Consume, Read, Admin}

// TokenSet has the tokens that a server accepts. It has their hashes alone.
type TokenSet struct {
	callers map[[sha256.Size]byte]*caller
}

// A caller is the owner of a token.
type caller struct {
	name   string
	grants []grant
}

// A grant is a right on the queue of a name, or on all whose names begin with it.
type grant struct {
	right  Right
	queue  string
	prefix bool
}

// may reports whether the caller has the right on a queue. The empty name is that of all queues.
func (c *caller) may(right Right, queue string) bool {
	return slices.ContainsFunc(c.grants, func(g grant) bool {
		if g.right != right && g.right != Admin {
			return false
		}
		return queue == g.queue && !g.prefix || g.prefix && strings.HasPrefix(queue, g.queue)
	})
}

const tokenBytes = 32

// NewToken returns a new random token, and the line of a file of tokens that grants it rights. Rights
// are as "push:orders" or "consume:mail.*".
func NewToken(name string, grants ...string) (token, line string, err error) {
	raw := make([]byte, tokenBytes)
	_, _ = rand.Read(raw) // never fails
	token = "dq_" + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(token))
	line = strings.Join(append([]string{name, hex.EncodeToString(sum[:])}, grants...), " ")
	_, err = ReadTokens(strings.NewReader(line))
	return token, line, err
}

const allowedLine = "NAME SHA256 RIGHT:QUEUE…, where RIGHT is push, consume, read or admin, and QUEUE may end in *"

// ReadTokens reads a file of tokens. Each line has a name, the SHA-256 of a token in hexadecimal, and
// rights as push:orders or admin:*, all separated by spaces. Empty lines and those that begin with #
// are skipped.
func ReadTokens(r io.Reader) (*TokenSet, error) {
	set := &TokenSet{callers: make(map[[sha256.Size]byte]*caller)}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := set.add(fields); err != nil {
			return nil, fmt.Errorf("line %d of the tokens: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	if len(set.callers) == 0 {
		return nil, backend.Invalid("tokens", "", "one or more lines of "+allowedLine)
	}
	return set, nil
}

func (set *TokenSet) add(fields []string) error {
	if len(fields) < 3 {
		return backend.Invalid("line of tokens", len(fields), "three or more fields: "+allowedLine)
	}
	var sum [sha256.Size]byte
	raw, err := hex.DecodeString(fields[1])
	if err != nil || copy(sum[:], raw) != len(sum) || len(raw) != len(sum) {
		return backend.Invalid("hash of token "+fields[0], "(hidden)", "64 hexadecimal digits, the SHA-256 of the token")
	}
	if set.callers[sum] != nil {
		return backend.Invalid("hash of token "+fields[0], "(hidden)", "one that no other line has")
	}
	c := &caller{name: fields[0]}
	for _, text := range fields[2:] {
		right, queue, found := strings.Cut(text, ":")
		queue, prefix := strings.CutSuffix(queue, "*")
		if !found || !slices.Contains(rights, Right(right)) || queue == "" && !prefix || strings.Contains(queue, "*") {
			return backend.Invalid("right of token "+fields[0], text, allowedLine)
		}
		c.grants = append(c.grants, grant{Right(right), queue, prefix})
	}
	set.callers[sum] = c
	return nil
}

// caller returns the owner of a token, nil for an unknown one. The time of the look depends on the
// hash alone, which tells nothing of the token.
func (set *TokenSet) caller(token string) *caller {
	return set.callers[sha256.Sum256([]byte(token))]
}
