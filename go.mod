module github.com/delayq/delayq

go 1.25

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/alecthomas/kong v1.17.0
	github.com/jonboulle/clockwork v0.5.0
	github.com/oklog/ulid/v2 v2.1.2
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)
