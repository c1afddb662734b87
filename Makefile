# Run `make` to see what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash

LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Watch a delay queue at work (about 15 s)
	go -C cmd/delayq run . demo

.PHONY: demo-picture
demo-picture: ## Record the demo, and draw docs/demo.svg (needs Python; a minute)
	@.ci/demo-picture

# The tests are in three tiers; CONTRIBUTING.md says what is in which. DELAYQ_TESTS names
# the tier to the tests.
#
# Most tests wait for times and servers, so twelve of a package run at once, whatever the number of processors. The longest packages
# begin. The other modules come after them: beside several brokers, another takes half a minute to connect to at a load of 10.
GOTEST := go test -race -timeout 60m -parallel 12
FASTER := go test -timeout 60m -parallel 12
# Packages with tests of a tier, the longest first.
packages = ./rabbitmq ./conformance $$(go list -f '{{.Dir}}' ./... | while read -r dir; do grep -qsE 'testenv[.]($(1))' $$dir/*_test.go && echo $$dir; done)
calls  = $$(grep -rE --include='*_test.go' '\bIn\(t, (testenv[.])?$(1)\)' . | wc -l)

.PHONY: test
test: tools check ## Test every package and every store in its default mode, with the race detector (about 11 minutes)
	@$(MAKE) --no-print-directory test-root
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-modules
	@echo "left out: $(call calls,All) tests or groups of them for make test-all, $(call calls,Nightly) for make nightly"

.PHONY: test-all
test-all: tools-all check ## The same, and without the race detector all modes, clusters, releases of Redisson, short chaos, adapters, the dashboard in a browser, other libraries, API, benchmarks once, fuzzing (about 40 minutes)
	@env -u DELAYQ_TESTS $(MAKE) --no-print-directory test-root
	$(FASTER) $(call packages,All)
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-all-modules
	@$(MAKE) --no-print-directory api
	@$(MAKE) --no-print-directory bench-once
	@$(MAKE) --no-print-directory fuzz FUZZTIME=1000x # a time instead may end in "context deadline exceeded" on a busy machine (golang/go#75804)

# go test keeps a result though a file outside the test's module has changed, such as a page, compose.yaml or the Dockerfile.
PAGES := go test -count=1 -run '^Test(Compose|Docs|Image|Page|Picture)' .

.PHONY: test-root test-modules test-command-line test-listbackend test-all-modules test-chaos test-other-modules
test-root:
	$(GOTEST) ./rabbitmq ./conformance
	$(GOTEST) -p 3 $$(go list ./... | grep -v -e /rabbitmq$$ -e /conformance$$) # they wait more than they compute

test-modules: test-command-line test-listbackend
test-command-line:
	cd cmd/delayq && $(GOTEST) ./... && $(PAGES)
test-listbackend:
	cd examples/listbackend && $(FASTER) -run '/virtual' ./...

# The longest one goes beside the others.
test-all-modules: test-chaos test-other-modules
test-chaos:
	cd chaos && go vet ./... && go test -count=1 -timeout 60m -parallel 4 ./...
test-other-modules:
	cd cmd/delayq && $(GOTEST) -count=1 ./...
	cd examples/listbackend && $(GOTEST) ./...
	cd adapters/watermill && go vet ./... && $(GOTEST) ./...
	cd adapters/gocloud && go vet ./... && $(GOTEST) ./...
	cd dashboard/browsertest && go vet ./... && go test -count=1 -timeout 60m ./...
	cd bench/peers && go vet ./... && go test -short -count=1 -timeout 60m ./verdict
	cd docs/check && go vet ./... && go test -count=1 -timeout 60m ./...
	cd bench/report && go vet ./... && go test -count=1 -timeout 60m ./...
	cd internal/testenv/container && go vet ./...

.PHONY: nightly
nightly: tools-all ## What takes minutes a test, long chaos, soak, flakes, newer servers (as root, six hours)
	$(GOTEST) -count=1 $(call packages,All|Nightly)
	@$(MAKE) --no-print-directory chaos
	@$(MAKE) --no-print-directory soak
	@$(MAKE) --no-print-directory flakes
	@$(MAKE) --no-print-directory test-newer

test-all flakes cover: export DELAYQ_TESTS = all
nightly test-newer: export DELAYQ_TESTS = nightly

# Benchmarks that rot fail here, and so do those that the goals of the report need and that are gone.
.PHONY: bench-once
bench-once:
	set -o pipefail; { go test -short -run '^$$' -bench . -benchtime 1x ./bench && cd bench/peers && \
	  go test -short -run '^$$' -bench . -benchtime 1x -timeout 5m .; } | (cd bench/report && go run . check)

.PHONY: test-newer
test-newer: ## Run the suite and the backends' tests, clusters too, on Redis 8.0, Valkey 8.1 and RabbitMQ 4.0 (as root, 40 minutes); ON=valkey takes one
	@.ci/newer $(ON)

.PHONY: chaos
chaos: tools ## Put every backend through faults, and judge what happened (12 minutes)
	cd chaos && go vet ./... && go test -count=1 -v -timeout 20m -run 'TestChaos|TestMutants|TestPowerCut' -chaos.for=4m -parallel 4 .

DURATION ?= 1h
.PHONY: soak
soak: tools ## Hold 2,000 messages a second on each store for DURATION=1h in all, with faults, and look for growth
	cd chaos && go test -count=1 -v -timeout 0 -run 'TestSoak$$' -chaos.soak=$(DURATION) .

.PHONY: flakes
flakes: tools ## Run the tests of concurrent code 20 times, on Redis 10 times, with the race detector (two hours)
	go test -race -count=20 -timeout 60m ./memory/...
	go test -race -count=20 -timeout 60m -run 'TestConformance/(memory|coarse)|Catches' ./conformance
	go test -race -count=10 -timeout 120m -run 'TestConformance/(zsetpoll|keyspace|redisson)' ./conformance

.PHONY: bench
bench: ## Run the benchmarks in full (some minutes)
	go test -run '^$$' -bench . -benchmem -timeout 30m ./bench

# SHORT=1 tries the machinery in two minutes. ONLY=Rabbit measures again what a pattern matches of the commands, and keeps the rest.
.PHONY: report
report: tools-all ## Measure, and write docs/benchmarks.md and its pictures (about 50 minutes)
	cd bench/report && go run . $(if $(SHORT),-short) $(if $(ONLY),-only '$(ONLY)')

BENCH     ?= ^Benchmark(Push|Throughput)$$/^backend=(memory|zsetpoll-script|keyspace|redisson)$$
ROUNDS    ?= 6
BENCHTIME ?= 0.2s

.PHONY: bench-compare
bench-compare: ## Compare benchmarks with those of a commit: BASE=main, and BENCH, ROUNDS, BENCHTIME
	@bench/report/compare.sh '$(BASE)' '$(BENCH)' '$(ROUNDS)' '$(BENCHTIME)'

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Fuzz what parses foreign bytes, each target for FUZZTIME=30s, or so often as 1000x
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z]*' $$dir/*_test.go | cut -c6-); do \
	    echo "$$dir $$f"; go -C $$dir test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x .; \
	  done; \
	done

VULN   := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB ?= https://vuln.go.dev
.PHONY: vuln
vuln: ## Look for known weaknesses in what the module depends on
	@if ! curl -fsS -o /dev/null --max-time 20 '$(VULNDB)/index/db.json'; then \
	  echo "vuln: nothing was checked: the database at $(VULNDB) cannot be reached from here (VULNDB= names another)" >&2; exit 69; fi
	go run $(VULN) -db '$(VULNDB)' ./...
	for dir in cmd/delayq adapters/watermill adapters/gocloud; do go run $(VULN) -C $$dir -db '$(VULNDB)' ./... || exit 1; done

.PHONY: cover
cover: tools-all ## Print the test coverage by package
	go test -race -cover -coverpkg ./... -coverprofile coverage.out ./...
	go tool cover -func coverage.out | tail -n 1

.PHONY: check
check: ## Check formatting and go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on: $$unformatted"; exit 1; fi
	go vet -race ./... # -race: the tests need the same builds
	cd cmd/delayq && go vet -race ./...
	cd examples/listbackend && go vet -race ./...

.PHONY: api
api: ## Compare the API with the last release: CHANGELOG.md must list each incompatible change under Changed
	@go run ./internal/release api

VERSION ?= v0.0.0
.PHONY: release-tags
release-tags: ## Check what a release VERSION=v0.1.0 needs, and print the tags to set now
	@go run ./internal/release tags '$(VERSION)'

.PHONY: lint
lint: ## Run golangci-lint
	@for dir in . cmd/delayq adapters/watermill adapters/gocloud; do \
	  (cd $$dir && if command -v golangci-lint >/dev/null; then golangci-lint run; else go run $(LINT) run; fi) || exit 1; done

# A test that finds no server or no JDK fails instead of being skipped. Those of make test ask for redis, rabbitmq and postgres alone.
test test-all nightly chaos soak flakes cover report: export DELAYQ_REQUIRE ?= redis,rabbitmq,java,beanstalkd,postgres,pgbouncer,shells,chromium

# The race detector needs a C compiler, and the backends their servers.
# The tests start servers of their own: the policy keeps a package from starting one when it is installed.
NEEDS := command -v $${CC:-cc} >/dev/null || missing+=" gcc libc6-dev"; \
	(PATH+=:/usr/sbin:/usr/local/bin:/usr/bin; command -v redis-server) >/dev/null || missing+=" redis-server"; \
	(PATH+=:/usr/lib/rabbitmq/bin:/usr/sbin; command -v rabbitmq-server) >/dev/null || missing+=" rabbitmq-server"; \
	{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 || missing+=" postgresql";
# Real Redisson needs a JDK and Maven, the commands of the documentation their shells, bench/peers beanstalkd,
# postgres PgBouncer, and the dashboard a browser.
NEEDS_ALL := { command -v java && command -v javac; } >/dev/null || missing+=" default-jdk-headless"; \
	command -v mvn >/dev/null || missing+=" maven"; \
	for shell in jq zsh fish curl python3; do command -v $$shell >/dev/null || missing+=" $$shell"; done; \
	(PATH+=:/usr/sbin:/usr/bin; command -v beanstalkd) >/dev/null || missing+=" beanstalkd"; \
	(PATH+=:/usr/sbin; command -v pgbouncer) >/dev/null || missing+=" pgbouncer"; \
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || missing+=" chromium"; \
	command -v npm >/dev/null || missing+=" npm";

.PHONY: tools tools-all
tools-all: NEEDS += $(NEEDS_ALL)
tools tools-all:
	@missing=; \
	$(NEEDS) \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  policy=/usr/sbin/policy-rc.d; \
	  if [ ! -e $$policy ]; then trap "rm -f $$policy" EXIT; printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; fi; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing >/dev/null; \
	else \
	  echo "the tests need programs that are missing; on Debian: sudo apt-get install$$missing"; exit 1; \
	fi
