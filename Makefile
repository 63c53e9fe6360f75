# What is built goes to bin/, what building and testing needs to .cache/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: check test fmt vet lint unit e2e chaos fuzz bench demo build tools clean

TOOLS    := .cache/bin
VENV     := .cache/venv
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
FUZZTIME := 30s
CHAOS    := 10m
export CGO_ENABLED := 1

# All that needs no second program, but for the S3 server of the bucket tests.
# The simulation of the lease runs once more, ten times as long, without -race.
check: fmt vet lint unit

# Everything: what README.md calls.
test: tools check e2e

fmt:
	@unformatted=$$(gofmt -l */); \
	if [[ -n $$unformatted ]]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...
	go vet -tags e2e,bench ./...
	go vet -tags faultyclock ./cmd/...

lint:
	@if [[ -x $(TOOLS)/golangci-lint ]]; then $(TOOLS)/golangci-lint run ./...; \
	else echo "no $(TOOLS)/golangci-lint: not linted (make tools builds it)"; fi

unit: $(TOOLS)/versitygw
	go test -race ./...
	go test -run '^(TestNoSchedule|TestTheSimulation)' ./leaser

e2e: tools build
	TIDEMARK_BIN=$(CURDIR)/bin/tidemark go test -tags e2e -count 1 -timeout 30m ./internal/e2e/...

# Anything happens to some databases and their sidecar, and to three nodes that
# share a replica, for as long as CHAOS says; `make e2e` does it for a minute.
# TIDEMARK_SEED=n repeats the choices of the run that printed it.
chaos: tools build
	TIDEMARK_BIN=$(CURDIR)/bin/tidemark TIDEMARK_CHAOS=$(CHAOS) \
		go test -tags e2e -count 1 -timeout 0 -run '^TestChaos(OfNodes)?$$' ./internal/e2e/

# Minimizing is kept short: it is not counted as fuzzing time.
fuzz:
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' */ | sed 's|/[^/]*:func | |' | sort | \
	while read -r dir target; do \
		echo "== $$dir $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "./$$dir" </dev/null; \
	done

bench: tools build
	go test -run '^$$' -bench . ./ltx ./wal
	TIDEMARK_BIN=$(CURDIR)/bin/tidemark go test -tags bench -count 1 -v -timeout 40m ./internal/e2e/bench/...

demo: build
	bin/tidemark demo

build:
	go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/tidemark ./cmd/tidemark

# The peers of the tests, at the versions that tools/ pins.
tools: $(TOOLS)/versitygw $(TOOLS)/litestream $(TOOLS)/golangci-lint $(VENV)/installed

$(TOOLS)/versitygw: tools/go.mod
	go -C tools build -o $(CURDIR)/$@ github.com/versity/versitygw/cmd/versitygw

$(TOOLS)/litestream: tools/go.mod
	go -C tools build -o $(CURDIR)/$@ github.com/benbjohnson/litestream/cmd/litestream

$(TOOLS)/golangci-lint: tools/lint/go.mod
	go -C tools/lint build -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(VENV)/installed: tools/requirements.txt
	python3 -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# The tools stay: building them takes minutes.
clean:
	rm -rf bin
