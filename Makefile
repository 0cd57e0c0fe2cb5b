# rwproxy: `make help` lists the targets.

GO ?= go
GOLANGCI_LINT := bin/golangci-lint
PROMTOOL := bin/promtool

# The race detector needs a C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/rwproxy
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/rwproxy ./cmd/rwproxy

.PHONY: demo
demo: build ## Start a Postgres, rwproxy and a worked example; ARGS=--once ends by itself
	bin/rwproxy demo $(ARGS)

.PHONY: test
test: postgres clients ## Run every test against real Postgres; ARGS are go test's
	$(GO) test $(RACE) -timeout 30m $(ARGS) ./...

# Debian's version is what make test uses.
.PHONY: versions
versions: clients ## Test on PostgreSQL 14, 17 and 18, which are downloaded; ARGS are go test's
	integration/versions/test.sh -timeout 30m $(or $(ARGS),./server ./flowstate ./internal/refresh ./rewrite ./integration)

# A minute each; FUZZTIME is another time. A worker starts no Postgres.
FUZZTIME ?= 60s

.PHONY: fuzz
fuzz: ## Run every fuzz target for a minute, as many at once as there are processors
	@grep --recursive --include='*_test.go' --only-matching '^func Fuzz[A-Za-z]*' . | sed 's/:func / /' | \
	xargs -n 2 -P "$$(getconf _NPROCESSORS_ONLN)" sh -c 'echo "--- $$1"; \
		$(GO) test -run "^$$" -fuzz "^$$1\$$" -parallel 1 -fuzztime $(FUZZTIME) "$$(dirname "$$0")"'

# Nothing that is downloaded stays, but Go modules and what npm caches.
.PHONY: suites
suites: build postgres ## Run the test suites of others with and without rwproxy; ARGS are names of suites
	$(GO) run ./integration/suites/compare $(ARGS)
	@set -e; dir=$$(mktemp -d); trap 'rm -r "$$dir"' EXIT; \
	integration/suites/fetch.sh "$$dir"; \
	$(GO) run ./integration/suites/splitcheck "$$dir/regress/sql"

.PHONY: bench
bench: postgres ## Compare with direct connections, pgbouncer and haproxy; ARGS are bench's
	$(GO) run ./bench $(ARGS)

# What the tests of other languages' drivers need. Installs only what is missing.
.PHONY: clients
clients:
	integration/clients/install.sh

# Fails early, and once, when no server binaries are installed.
.PHONY: postgres
postgres:
	@$(GO) test -count=1 -run TestTheServerIsStartedWhenItIsFirstAskedFor ./internal/embedded/pgtest

.PHONY: lint
lint: $(GOLANGCI_LINT) alerts ## Run go vet and golangci-lint, and check the alerts and the dashboard
	$(GO) vet ./...
	$(GOLANGCI_LINT) run ./...

.PHONY: alerts
alerts: $(PROMTOOL)
	$(PROMTOOL) check rules --lint=all --lint-fatal deploy/prometheus/alerts.yml
	$(PROMTOOL) test rules deploy/prometheus/alerts_test.yml
	$(GO) run ./deploy/grafana/expressions deploy/grafana/rwproxy.json > bin/dashboard.yml
	$(PROMTOOL) check rules bin/dashboard.yml

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code
	$(GOLANGCI_LINT) fmt ./...

# The version is the one of tools/go.mod. The first build takes some minutes.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	$(GO) build -modfile=tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# Without the service discovery of clouds, which is most of it.
$(PROMTOOL): tools/promtool/go.mod tools/promtool/go.sum
	$(GO) build -modfile=tools/promtool/go.mod -tags remove_all_sd -o $@ github.com/prometheus/prometheus/cmd/promtool
	@touch $@
