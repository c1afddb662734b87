package valid

import "github.com/delayq/delayq/backend"

// Apply has options set up a value. It returns the error of the first one that fails or is nil.
func Apply[T any, O ~func(T) error](to T, opts []O, what, allowed string) error {
	for _, set := range opts {
		if set == nil {
			return backend.Invalid(what, Described("nil"), allowed)
		}
		if err := set(to); err != nil {
			return err
		}
	}
	return nil
}
