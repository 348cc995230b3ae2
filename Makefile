# demo · test · slow · lint · bench · docs: each sets up everything it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint bench docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)  ## run the main job on the built-in world; the report is demo/index.html
	$(BIN)/unveil demo --output demo --overwrite

test: $(READY) lint  ## lint, types and every quick test
	$(BIN)/pytest -n 2 -m 'not slow'

slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -m slow

lint: $(READY)  ## ruff and mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# From the quickest to the longest; a quarter of an hour on two quiet cores. benchmarks/README.md says what each tells.
bench: $(READY)  ## speed and memory, as ratios measured in one run
	$(BIN)/python -m benchmarks.world
	$(BIN)/python -m benchmarks.serve
	$(BIN)/python -m benchmarks.train
	$(BIN)/python -m benchmarks.paper --turns 3
	$(BIN)/python -m benchmarks.losses
	$(BIN)/python -m benchmarks.workers --turns 1
	$(BIN)/python -m benchmarks.checksums
	$(BIN)/python -m benchmarks.ingest --rounds 2
	$(BIN)/python -m benchmarks.out_of_core --events 10000000
	$(BIN)/python -m benchmarks.ml20m --users 13849 --events 2000000 --batches 40 --cases 3000
	$(BIN)/python -m benchmarks.slopes --rounds 1

docs: $(READY)  ## the site, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:  ## remove the environment and caches
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
