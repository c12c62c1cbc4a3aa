# Two commands do everything on a fresh machine: `make demo` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help setup demo test unit spark contract integration e2e lint types docs lock clean

BIN := .venv/bin
HOME_DIR ?= .lean-ops

# The first Python that is new enough; name another one with `make setup PYTHON=/path/to/python3.12`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3; do \
	if $$python -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$python; break; fi; done)
endif

PYTEST := $(BIN)/pytest -q --durations=10
COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	--custom-compile-command "make lock" --quiet
EXTRA_JAVA := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["java"], sep="\n")

help: ## List every target
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv with the locked packages; does nothing when it is whole
	@if [ -z "$(PYTHON)" ]; then \
		echo "set-up failed: no Python 3.11 or newer on PATH; found $$(python3 --version 2>/dev/null || echo none)." >&2; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@"$(PYTHON)" scripts/bootstrap.py

demo: setup ## The whole story on generated data, in .lean-ops
	@$(BIN)/lean-ops --home $(HOME_DIR) demo

test: setup ## Every tier of tests
	$(PYTEST) tests

unit: setup ## Tests without Spark, in seconds
	$(PYTEST) tests/unit

spark: setup ## Tests with a Spark session
	$(PYTEST) tests/spark

contract: setup ## One suite for every implementation of a port
	$(PYTEST) tests/contract

integration: setup ## Tests of parts together, on real files and tables
	$(PYTEST) tests/integration

e2e: setup ## Tests of the command line in processes of its own
	$(PYTEST) tests/e2e

lint: setup ## Style, formatting and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy, strict
	$(BIN)/mypy

docs: setup ## Make docs/types.md again from the tests' own table of spellings
	$(BIN)/python scripts/type_tables.py

lock: setup ## Make lock/*.txt again from pyproject.toml (LOCK_FLAGS=--upgrade for newer versions)
	$(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra dev --output-file lock/dev.txt
	$(BIN)/python -c '$(EXTRA_JAVA)' | $(COMPILE) $(LOCK_FLAGS) --no-annotate - --output-file lock/java.txt
	@if grep -n '://' lock/*.txt; then echo "an address got into a lock file" >&2; exit 1; fi

clean: ## Remove .venv and caches; data in .lean-ops stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
