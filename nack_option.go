package delayq

import "github.com/delayq/delayq/backend"

// NackOption adds to a [Delivery.Nack].
type NackOption func(*nackOptions) error

type nackOptions struct {
	newHeaders bool
	headers    map[string]string
}

// NackHeaders has h replace all headers of the message as it is given back; nil or empty leaves none. What is to stay of the old ones, as the
// trace of the push, h has too. The limits are those of a push. The store copies h. A message that is not given back keeps
// its headers; after a nack whose outcome is unknown it has the old ones or the new. A store at its limit may return [ErrFull] for headers
// larger than the old ones; then the lease goes on. Where the backend lacks [ChangingHeaders], Nack returns [ErrUnsupported] and
// changes nothing.
func NackHeaders(h map[string]string) NackOption {
	return func(o *nackOptions) error {
		o.newHeaders, o.headers = true, h
		return validHeaders(h)
	}
}

func (q *queue) nackOptions(opts []NackOption) (nackOptions, error) {
	if len(opts) == 0 {
		return nackOptions{}, nil
	}
	var o nackOptions
	for _, set := range opts {
		if set == nil {
			return o, backend.Invalid("nack option", described("nil"), "the result of NackHeaders")
		}
		if err := set(&o); err != nil {
			return o, err
		}
	}
	if o.newHeaders && !q.Supports(ChangingHeaders) {
		return o, q.unsupported(ChangingHeaders.String())
	}
	return o, nil
}
