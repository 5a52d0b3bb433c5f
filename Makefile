# make demo    train a skill here, without network or key
# make test    everything: formatting, lint, types, layers, all tests
# make check   the same without the slow tests
# make soak    long tests once more, under further conditions, and properties with more examples
# make bench   measurements against rivals; make bench-startup is one of them
# make docs    checks of the documentation
#
# SKILLGIT_PYTHON=python3.12 make … chooses the interpreter; else the newest one on PATH from 3.11 on is taken.

# Tests start the program hundreds of times, which is quicker once it is compiled, and write thousands of small files that
# git and SQLite wait for, which is quicker in memory: there if 4 GB are free, else where temporary files are.
unexport PYTHONDONTWRITEBYTECODE
export PYTEST_DEBUG_TEMPROOT := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}')
# Tests wait for servers and for processes that they kill: half as many again as there are processors keep these busy.
WORKERS := $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
PYTEST = $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -o tmp_path_retention_policy=failed -o tmp_path_retention_count=1

.DEFAULT_GOAL := check
.PHONY: demo test tests check soak bench docs lint
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.tools
GAMES := $(VENV)/.games
DEMO := build/demo
SOURCES := skillgit envs backends tests

# A name on PATH may be a shim that cannot start, so each is tried.
CANDIDATES := $(or $(SKILLGIT_PYTHON),python3.13 python3.12 python3.11 python3)
PYTHON = $(shell for python in $(CANDIDATES); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
DEVELOPMENT = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")
GAMING = import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["alfworld"], sep="\n")
# Most of what is installed is never run here: modules are compiled when they are first imported.
PIP = $(if $(shell command -v uv 2>/dev/null),uv pip install --quiet --python $(BIN)/python,\
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check)

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { \
		echo "none of these is Python 3.11 or newer: $(CANDIDATES); name one with SKILLGIT_PYTHON" >&2; exit 2; }
	@test -x $(BIN)/python || if command -v uv >/dev/null 2>&1; then \
		uv venv --python "$(PYTHON)" $(VENV); else "$(PYTHON)" -m venv $(VENV); fi
	$(PIP) --editable .
	@touch $@

$(TOOLS): $(INSTALLED)
	@$(BIN)/python -c '$(DEVELOPMENT)' > $(VENV)/dev.txt
	$(PIP) --requirement $(VENV)/dev.txt
	@touch $@

$(GAMES): $(TOOLS)
	@$(BIN)/python -c '$(GAMING)' > $(VENV)/games.txt
	$(PIP) --requirement $(VENV)/games.txt || \
		echo "alfworld cannot be built here, it needs gcc, g++ and make: tests that play games are skipped" >&2
	@touch $@

demo: $(INSTALLED)
	@rm -rf $(DEMO)
	$(BIN)/skillgit init $(DEMO) --env searchqa
	$(BIN)/skillgit -C $(DEMO) train demo --run demo
	@echo
	@echo "The run is a git repository in $(DEMO). To type the commands above there:"
	@echo "  . $(BIN)/activate && cd $(DEMO)"
	@echo "  git log --graph --oneline run/demo"

lint: $(TOOLS)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: lint $(GAMES)
	$(PYTEST) -m "not slow and not soak"

test: lint tests

tests: $(GAMES)
	$(PYTEST) -m "not soak"

soak: $(GAMES)
	$(PYTEST) -m soak
	$(PYTEST) -m hypothesis --hypothesis-profile thorough

bench: $(patsubst tests/bench/%.py,bench-%,$(filter-out %/measure.py,$(wildcard tests/bench/*.py)))

bench-%: $(GAMES)
	@$(BIN)/python tests/bench/$*.py

docs: $(TOOLS)
	$(BIN)/pytest -q tests/test_docs.py
