package peers

import "sync/atomic"

// flow counts the messages that were pushed and not handled, for a system that cannot say.
type flow struct{ count atomic.Int64 }

func (f *flow) came(n int) { f.count.Add(int64(n)) }

func (f *flow) counting(handle func(body []byte)) func(body []byte) {
	return func(body []byte) {
		handle(body)
		f.count.Add(-1)
	}
}
