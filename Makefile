# napisim: `make` lists what can be made.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The tools are pinned here and nowhere else; they are no part of go.mod.
GOFUMPT_VERSION := v0.12.0
GOLANGCI_VERSION := v2.15.0

TOOLS := .tools/bin
GOFUMPT := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)

# Only these start goroutines; everything below them is single-threaded by rule.
PARALLEL := ./scenarios/... ./cmd/...

# Settings to override: make test TESTFLAGS=-run=GRO, make bench BENCH=Engine COUNT=10.
TESTFLAGS ?= $(if $(CI),-v)
FUZZTIME ?= 3s
BENCH ?= .
COUNT ?= 1

GO_TEST := go test -count=1 -shuffle=off -timeout=8m
# A release knows its commit where git answers.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)
GO_BUILD := CGO_ENABLED=0 go build -trimpath

.PHONY: help build run test test-short check fmt-check vet lint unit race fuzz fmt bench tools amd64-levels clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

build: ## build bin/napisim
	$(GO_BUILD) -buildvcs=$(VCS) -o bin/napisim ./cmd/napisim

run: build ## build, then run the first scenario
	bin/napisim run quickstart

test: check unit race fuzz ## everything that a change has to pass

test-short: ## the quick tests only
	$(GO_TEST) -short $(TESTFLAGS) ./...

# Without a way to fetch the tools the tests still say most of it: they keep the
# arrows and the budgets themselves.
check: ## format, vet and lint; without the pinned tools only gofmt and vet
	@if $(MAKE) --no-print-directory tools; then \
		$(MAKE) --no-print-directory fmt-check vet lint; \
	else \
		echo "SKIPPED: gofumpt and golangci-lint could not be installed; gofmt and vet only" >&2; \
		$(MAKE) --no-print-directory GOFUMPT=gofmt fmt-check vet; \
	fi

fmt-check:
	@bad=$$($(GOFUMPT) -l .); if [ -n "$$bad" ]; then echo "not formatted (make fmt):"; echo "$$bad"; exit 1; fi

vet:
	go vet -buildvcs=false ./...

lint: $(GOLANGCI) ## golangci-lint with .golangci.yml
	$(GOLANGCI) run ./...

unit:
	$(GO_TEST) $(TESTFLAGS) ./...

# The race detector needs a C compiler.
race:
	@if [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null; then \
		set -x; $(GO_TEST) -race -short $(PARALLEL); \
	else \
		echo "SKIPPED: no C compiler for the race detector" >&2; \
	fi

fuzz: ## each fuzz target for FUZZTIME
	@{ grep -rHo --include='*_test.go' --exclude-dir='.?*' '^func Fuzz[A-Za-z0-9_]*' . || true; } | sort | \
	while IFS=: read -r file name; do \
		name=$${name#func }; echo "fuzz $$name in $$(dirname "$$file")"; \
		go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done

bench: ## benchmarks in a form that benchstat reads
	go test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(COUNT) ./...

fmt: $(GOFUMPT) ## format all Go files
	$(GOFUMPT) -l -w .

tools: $(GOFUMPT) $(GOLANGCI) ## build the pinned tools, once

$(GOFUMPT): PACKAGE := mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
$(GOLANGCI): PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
$(GOFUMPT) $(GOLANGCI):
	GOBIN=$(CURDIR)/$(TOOLS) CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' $(PACKAGE)
	mv $(TOOLS)/$(patsubst %-$(lastword $(subst @, ,$(PACKAGE))),%,$(notdir $@)) $@

amd64-levels: ## a run must be the same to the byte on every x86-64 level
	@mkdir -p bin/levels
	@for level in v1 v3; do \
		GOARCH=amd64 GOAMD64=$$level $(GO_BUILD) -buildvcs=false -o bin/levels/napisim-$$level ./cmd/napisim; \
		bin/levels/napisim-$$level run quickstart -o json >bin/levels/$$level.json </dev/null; \
	done
	cmp bin/levels/v1.json bin/levels/v3.json
	@test -s bin/levels/v1.json && echo "GOAMD64=v1 and v3 agree"

clean: ## remove what was built, but not the tools
	rm -rf bin out
