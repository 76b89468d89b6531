# The verbs of the project. `make help` lists them; everything they do, `.venv/bin/matrix --help` tells in detail.
SHELL := /bin/sh
PYTHON ?= python3
SUITE ?= quick
ENGINE ?= auto
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# Tests in as many processes as there are CPUs, four at most; tests/conftest.py says which run one after the other.
PARALLEL := -n logical --maxprocesses 4

.DEFAULT_GOAL := help
.PHONY: help setup matrix installs startup shutdown deploy list dry-run report readme wheels doctor bases images \
	compose clean test test-unit lint bench-loadgen bench-method bench-schedule lock schemas

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  SUITE=quick|throughput|smoke|compiled|…  ENGINE=auto|docker|local  ARGS='--only granian* --precision 3%'"

setup: $(VENV)/.ready ## make .venv with `matrix` and `loadgen`, from hashed locks

$(VENV)/.ready: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.13 …" >&2; exit 3; }
	@echo "setting up $(VENV) (once, about half a minute)"
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "$(PYTHON) cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 3; }
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.ready-test: $(VENV)/.ready requirements/test.txt
	@echo "installing what the tests need"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/test.txt
	@touch $@

matrix: setup ## measure SUITE (default: quick) and show its tables
	@$(BIN)/matrix run $(SUITE) --engine $(ENGINE) $(ARGS)

installs: setup ## what installs where: every server on every flavour, from wheel and from sdist
	@$(BIN)/matrix run installs --engine $(ENGINE) $(ARGS)

startup: setup ## how soon each server answers, and what it costs idle
	@$(BIN)/matrix run startup --engine $(ENGINE) $(ARGS)

shutdown: setup ## which server drops a request on SIGTERM, at its defaults and tuned
	@$(BIN)/matrix run shutdown --engine $(ENGINE) $(ARGS)

deploy: setup ## what a rolling replacement, a reload, a killed worker loses
	@$(BIN)/matrix run deploy --engine $(ENGINE) $(ARGS)

list: setup ## the cells of SUITE, what is left out and why; ARGS=--check: does each server work?
	@$(BIN)/matrix list $(SUITE) $(ARGS)

dry-run: setup ## SUITE without servers: invented figures, real pipeline
	@$(BIN)/matrix run $(SUITE) --dry-run $(ARGS)

report: setup ## the tables of the newest run again
	@$(BIN)/matrix report $(ARGS)

readme: setup ## the tables and pictures of README and docs/results.md anew, from results/reference
	@for run in results/reference/*/; do \
		page=README.md; grep -q "results:$$(basename $$run) -->" $$page || page=docs/results.md; \
		$(BIN)/matrix report $$run --into $$page || exit 1; \
	done
	@for run in throughput shutdown; do \
		$(BIN)/matrix report results/reference/$$run --format svg -O docs/$$run.svg || exit 1; \
	done

wheels: setup ## which wheels exist of SERVERS (default: all), for each Python, libc and architecture
	@$(BIN)/matrix wheels $(or $(SERVERS),all) $(ARGS)

doctor: setup ## what on this machine would spoil a measurement, and how to mend it
	@$(BIN)/matrix doctor

bases: setup ## make the stand-in base images of a machine that cannot pull
	@$(BIN)/matrix bases $(ARGS)

images: setup ## our images in the Docker Engine: size, and what they share
	@$(BIN)/matrix images

compose: setup ## write compose.matrix.yaml: one service per image of SUITE
	@$(BIN)/matrix compose $(SUITE) $(ARGS)

clean: setup ## remove what runs left behind (containers of ours; images with ARGS=--images)
	@$(BIN)/matrix clean $(ARGS)

test: $(VENV)/.ready-test lint ## lint, types, tests (Docker's where there is one); ARGS="-m servers": those of real servers
	@$(BIN)/pytest $(PARALLEL) $(ARGS)

test-unit: $(VENV)/.ready-test ## the unit tests alone: no server, no container
	@$(BIN)/pytest $(PARALLEL) tests/unit $(ARGS)

lint: $(VENV)/.ready-test ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench-loadgen: $(VENV)/.ready-test ## the load generator beside wrk, side by side: ratios
	@$(BIN)/python bench/loadgen_bench.py $(ARGS)

bench-method: $(VENV)/.ready-test ## calibration: false alarms, and 5 % found, by our method and by the usual way
	@$(BIN)/python -m bench.method_bench $(ARGS)

bench-schedule: $(VENV)/.ready-test ## rounds and slices that a suite's time is best split into, from finished runs
	@$(BIN)/python -m bench.schedule_bench $(ARGS)

lock: setup ## resolve the locks in requirements/ anew
	@for name in run test loadgen; do \
		$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
			--no-emit-index-url --no-emit-find-links requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links images/apps/requirements.in -o images/apps/requirements.txt

schemas: setup ## write the JSON Schemas and the tables of fields under docs/
	@$(BIN)/matrix schema --write docs
