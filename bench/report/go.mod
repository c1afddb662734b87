module github.com/delayq/delayq/bench/report

go 1.25.0

replace github.com/delayq/delayq => ../..

require (
	github.com/delayq/delayq v0.0.0
	golang.org/x/perf v0.0.0-20251208221838-04cf7a2dca90
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
)

tool golang.org/x/perf/cmd/benchstat
