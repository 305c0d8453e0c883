# Everything that a contributor runs. `make` alone lists it.

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)
DATE       := $(shell git log -1 --format=%cI 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)
# With Go's own resolver and user lookup, code is the same with cgo and without: what
# the server and the agent share is compiled, vetted and checked once.
TAGS       := netgo,osusergo
export GOFLAGS := -trimpath -tags=$(TAGS) $(GOFLAGS)
GO         ?= go
LDFLAGS    := -s -w -X main.version=$(VERSION) -X bramble.dev/bramble/server/api.BuildVersion=$(VERSION) -X bramble.dev/bramble/server/api.BuildDate=$(DATE)
BUILD      := $(GO) build -ldflags '$(LDFLAGS)' -o bin/
AGENT_TAGS := $(TAGS),remote,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper
CNI        := github.com/containernetworking/plugins/plugins
TOOL       := $(GO) tool -modfile=packaging/tools.mod
# How to run as root what must be; without sudo, the programs say what they need.
# A Debian user's PATH has no sbin, where useradd is.
ROOT       := $(shell [ "$$(id -u)" = 0 ] || ! command -v sudo >/dev/null || echo sudo --preserve-env env PATH="$$PATH:/usr/sbin:/sbin")
AS_ROOT    := $(if $(ROOT),-exec '$(ROOT)')

# Without a vet of its own, which costs minutes where nothing is cached: check has it.
TEST       := $(GO) test -vet=off

# Folders whose code or tests need the agent's build: no cgo, Podman's tags.
COMMANDS   := ./cmd/bramble-agent ./cmd/bramble-network ./cmd/edgectl
AGENT_PKGS := ./hw ./nodeagent/... $(COMMANDS) ./test/...
RACE_PKGS  := ./server/... ./systemd/... ./cmd/bramble-server ./cmd/settings
# Of the agent, what does not link Podman: the race detector needs cgo.
PURE_PKGS  := ./hw ./nodeagent/container ./nodeagent/device ./nodeagent/doctor ./nodeagent/pod ./nodeagent/probe ./nodeagent/report ./nodeagent/state ./nodeagent/stream ./nodeagent/volume ./nodeagent/network/netapi

.PHONY: help build deps demo demo-stop check test test-unit test-race test-real test-e2e test-long bench bench-scheduler sim generate clean

help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## build all programs into bin/
	@command -v $(GO) >/dev/null || { printf 'error: no Go in PATH\nhint: go.dev/dl has it, 1.26 or later (Debian has an older one)\n' >&2; exit 1; }
	CGO_ENABLED=1 $(BUILD) ./cmd/bramble-server
	CGO_ENABLED=0 $(BUILD) -tags $(AGENT_TAGS) ./cmd/bramble-agent ./cmd/bramble-network
	CGO_ENABLED=0 $(BUILD)cni/ -modfile=packaging/tools.mod $(CNI)/main/bridge $(CNI)/ipam/static
	CGO_ENABLED=0 $(BUILD) ./cmd/edgectl ./test/demo
	$(MAKE) --no-print-directory -C packaging/pause OUT=$(CURDIR)/bin/pause

bin/demo:
	CGO_ENABLED=0 $(BUILD) ./test/demo

deps: ## install the Debian packages that are missing (says which)
	@packaging/install-deps

demo: deps build ## a server, a rootless node and a pod on this machine, left running
	@$(ROOT) bin/demo up

demo-stop: bin/demo ## stop the demo and leave nothing behind but the packages
	@$(ROOT) bin/demo down

check: ## formatting, vet, modules, staticcheck, architecture
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }
	CGO_ENABLED=1 $(GO) vet $(RACE_PKGS)
	CGO_ENABLED=0 $(GO) vet -tags $(AGENT_TAGS) $(AGENT_PKGS)
	$(GO) mod tidy -diff
	CGO_ENABLED=1 $(TOOL) staticcheck -tags $(TAGS) $(RACE_PKGS)
	CGO_ENABLED=0 $(TOOL) staticcheck -tags $(AGENT_TAGS) $(AGENT_PKGS)
	$(GO) test ./test/arch

# Side by side: what computes, and what waits for Podman.
test: deps build bin/kubectl check ## everything that a change must pass (12 minutes, 30 the first time)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-race test-real test-e2e

test-unit: ## packages by themselves, the pure ones with the race detector
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-race test-real

test-race:
	CGO_ENABLED=1 $(TEST) -race -shuffle=on $(RACE_PKGS)
	CGO_ENABLED=1 $(TEST) -race -shuffle=on $(AS_ROOT) $(PURE_PKGS)

test-real:
	CGO_ENABLED=0 $(TEST) -tags $(AGENT_TAGS) -shuffle=on $(AS_ROOT) ./nodeagent ./nodeagent/runtime ./nodeagent/network/... $(COMMANDS) ./test/cluster ./test/demo ./test/sim

test-e2e: ## real servers, agents, Podman and kubectls, from outside (needs root)
	CGO_ENABLED=0 $(TEST) -count=1 -timeout 20m -parallel 3 $(AS_ROOT) ./test/e2e

test-long: deps build bin/kubectl ## campaigns at full size
	BRAMBLE_KILL_POINTS=200 BRAMBLE_INFORMER_CHANGES=10000 BRAMBLE_INFORMER_RESTARTS=20 BRAMBLE_NODE_KILLS=40 BRAMBLE_RESTORES=5 CGO_ENABLED=0 $(TEST) -count=1 -timeout 60m -v $(AS_ROOT) ./test/e2e
	BRAMBLE_THIN_KB=10000 CGO_ENABLED=0 $(TEST) -count=1 -timeout 20m -v $(AS_ROOT) -run ThinLink ./test/e2e
	BRAMBLE_SOAK=1h CGO_ENABLED=0 $(TEST) -count=1 -timeout 90m -v $(AS_ROOT) -run Soak ./test/e2e
	BRAMBLE_LONG=1 $(TEST) -count=1 ./server/openapi

bench: deps build bin/kubectl ## the figures of docs/benchmarks.md, on an idle machine
	@CGO_ENABLED=0 $(TEST) -count=1 -timeout 90m -v $(AS_ROOT) ./test/bench | grep -E '^\||FAIL|_test\.go|^ok'

# A module of its own, which the programs' go.mod does not know.
bench-scheduler: ## Bramble's scheduler and Kubernetes' own, side by side (10 minutes)
	CGO_ENABLED=1 $(BUILD) ./cmd/bramble-server
	@cd ./test/kubescheduler && CGO_ENABLED=0 $(TEST) -count=1 -timeout 60m -v . | grep -E '^\||FAIL|_test\.go|^ok'

bin/kubectl: ## stock kubectl for the tests, from Kubernetes' own package
	CGO_ENABLED=0 $(GO) build -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2' -o bin/ ./test/kubectl

sim: ## docs/simulation.md and its plot: fleets that get warm, simulated
	CGO_ENABLED=0 $(GO) run ./test/sim -into docs

generate: ## the OpenAPI documents, after a change of the API's types
	$(GO) generate ./server/openapi

clean: ## remove what was built
	rm -rf bin
