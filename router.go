package delayq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// TypeHeader is the header by which a [Router] chooses. [Type] sets it.
const TypeHeader = "type"

// Type sets the type of a message, for a [Router]: it is the [TypeHeader].
func Type(name string) PushOption { return Header(TypeHeader, name) }

// A Router hands each message of a queue to the handler of the message's type. The handler of ""
// gets the messages without a type. It must not be changed while a Consume uses it.
//
//	err := q.Consume(ctx, delayq.Router{
//		"payment-timeout": cancelUnpaid,
//		"review-default":  delayq.TypedHandler(delayq.JSON, reviewByDefault),
//	}.Handle)
type Router map[string]Handler

// Handle is a [Handler]. A message of a type without a handler becomes a dead letter at once, with
// the reason.
func (r Router) Handle(ctx context.Context, d *Delivery) error {
	name, typed := d.Headers[TypeHeader]
	if h := r[name]; h != nil {
		return h(ctx, d)
	}
	if !typed {
		return fmt.Errorf("%w: it has no header %q; handled are %s", ErrDeadLetter, TypeHeader, r.types())
	}
	return fmt.Errorf("%w: nobody handles type %q; handled are %s", ErrDeadLetter, name, r.types())
}

func (r Router) types() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name] != nil {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
