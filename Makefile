# Run `make` to see what there is.
.DEFAULT_GOAL := help
SHELL := /bin/bash

LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Watch a delay queue at work (about 15 s)
	go run ./cmd/delayq demo

.PHONY: test
test: compiler check ## Run every test with the race detector, and each benchmark once
	go test -race -timeout 20m ./...
	go test -short -run '^$$' -bench . -benchtime 1x ./bench

.PHONY: flakes
flakes: compiler ## Run the tests of concurrent code 20 times with the race detector
	go test -race -count=20 -timeout 40m ./memory/... ./conformance/...

.PHONY: bench
bench: ## Run the benchmarks in full (some minutes)
	go test -run '^$$' -bench . -benchmem -timeout 30m ./bench

.PHONY: fuzz
fuzz: ## Fuzz what parses bytes, 30 s each
	go test -run '^$$' -fuzz FuzzRecord -fuzztime 30s ./memory

.PHONY: cover
cover: compiler ## Print the test coverage by package
	go test -race -cover -coverpkg ./... -coverprofile coverage.out ./...
	go tool cover -func coverage.out | tail -n 1

.PHONY: check
check: ## Check formatting and go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on: $$unformatted"; exit 1; fi
	go vet ./...

.PHONY: lint
lint: ## Run golangci-lint
	@if command -v golangci-lint >/dev/null; then golangci-lint run; else go run $(LINT) run; fi

# The race detector needs a C compiler.
.PHONY: compiler
compiler:
	@if ! command -v $${CC:-cc} >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null; \
	  else \
	    echo "the race detector needs a C compiler; on Debian: sudo apt-get install gcc libc6-dev"; exit 1; \
	  fi; fi
