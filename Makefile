# Every habit of the workspace has one name here. `make` alone lists them.

# Build artefacts live outside the clone, so that a fresh clone starts warm.
CACHE := $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/concert
CARGO_TARGET_DIR ?= $(CACHE)/target
export CARGO_TARGET_DIR

CARGO ?= cargo
ARGS ?=
SEED ?=
PLAY ?= managed

.DEFAULT_GOAL := help
.PHONY: demo help test build bench replay fmt clean-cache

help: ## list the targets
	@echo 'usage: make TARGET'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  %-12s %s\n", $$1, $$2 }'
	@echo
	@echo 'Build cache: $(CARGO_TARGET_DIR)'
	@echo '             (set CARGO_TARGET_DIR or XDG_CACHE_HOME to move it)'

test: ## format check, clippy, all tests, documentation: what CI runs
	@scripts/test

build: ## build every crate
	$(CARGO) build --workspace --locked

demo: ## a control plane with a simulated cloud in a temporary folder; kubectl can speak to it
	$(CARGO) run -p concert --bin concert --locked -- demo $(ARGS)

bench: ## run the benchmarks; choose with ARGS, as in: make bench ARGS='store --json'
	$(CARGO) build --release --workspace --bins --locked
	@$(CARGO_TARGET_DIR)/release/concert-bench $(ARGS)

replay: ## replay one simulation, as in: make replay SEED=8472, or PLAY=toy SEED=8472
	@test -n '$(SEED)' || { echo 'replay needs a seed, hint: make replay SEED=8472' >&2; exit 2; }
	$(CARGO) run -p concert-sim --locked -- $(PLAY) --seed $(SEED)

fmt: ## format all Rust code in place
	$(CARGO) fmt --all

clean-cache: ## remove the build cache
	$(CARGO) clean
