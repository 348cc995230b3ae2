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

bench: $(READY)  ## speed and memory, as ratios measured in one run
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.world
	$(BIN)/python -m benchmarks.train
	$(BIN)/python -m benchmarks.serve

docs: $(READY)  ## the site, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

clean:  ## remove the environment and caches
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
