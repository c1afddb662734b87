module github.com/delayq/delayq/examples/listbackend

go 1.25.0

replace github.com/delayq/delayq => ../..

require (
	github.com/delayq/delayq v0.0.0
	github.com/jonboulle/clockwork v0.5.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	go.opentelemetry.io/otel v1.44.0 // indirect
	go.opentelemetry.io/otel/metric v1.44.0 // indirect
	go.opentelemetry.io/otel/trace v1.44.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
