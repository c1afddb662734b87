module github.com/delayq/delayq/bench/report

go 1.25.0

replace github.com/delayq/delayq => ../..

require (
	github.com/delayq/delayq v0.0.0
	github.com/dustin/go-humanize v1.0.1
	golang.org/x/perf v0.0.0-20251208221838-04cf7a2dca90
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	golang.org/x/image v0.34.0 // indirect
	golang.org/x/text v0.40.0 // indirect
)

tool golang.org/x/perf/cmd/benchstat
