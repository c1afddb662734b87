package rabbitmq

import (
	"context"
	"errors"
	"testing"
)

func TestWaiterLeaves(t *testing.T) {
	t.Parallel()
	ws := waiters{left: make(chan struct{}, 1)}
	for range 3 {
		ws.all = append(ws.all, &waiter{limit: 10, got: make(chan received, 1)})
	}
	served, left, rest := ws.all[0], ws.all[1], ws.all[2]
	served.claim()
	served.got <- received{err: errGone}
	if r := ws.leave(served, context.Canceled); !errors.Is(r.err, errGone) || len(ws.left) > 0 {
		t.Errorf("a waiter that leaves when it is served gets %v, want its result", r.err)
	}
	if r := ws.leave(left, context.Canceled); !errors.Is(r.err, context.Canceled) || len(ws.left) == 0 {
		t.Errorf("a waiter that leaves gets %v, want the reason, and the loop is told", r.err)
	}
	if n := ws.wanted(); n != 10 || len(ws.all) != 1 || ws.all[0] != rest {
		t.Errorf("%d messages are wanted by %d waiters, want 10 by the last", n, len(ws.all))
	}
	if ws.fail(errGone); !errors.Is((<-rest.got).err, errGone) || ws.wanted() != 0 {
		t.Error("want the last waiter to fail")
	}
}
