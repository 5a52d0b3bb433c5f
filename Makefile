# make demo    train a skill here, without network or key
# make test    everything: formatting, lint, types, layers, all tests
# make check   the same without the slow tests
# make bench   measurements against rivals; make bench-startup is one of them
# make docs    checks of the documentation
#
# SKILLGIT_PYTHON=python3.12 make … chooses the interpreter; else the newest one on PATH from 3.11 on is taken.

.DEFAULT_GOAL := check
.PHONY: demo test check bench docs lint
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO := build/demo
SOURCES := skillgit envs backends tests

# A name on PATH may be a shim that cannot start, so each is tried.
CANDIDATES := $(or $(SKILLGIT_PYTHON),python3.13 python3.12 python3.11 python3)
PYTHON = $(shell for python in $(CANDIDATES); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
DEVELOPMENT = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { \
		echo "none of these is Python 3.11 or newer: $(CANDIDATES); name one with SKILLGIT_PYTHON" >&2; exit 2; }
	@if command -v uv >/dev/null 2>&1; then \
		set -ex; test -x $(BIN)/python || uv venv --python "$(PYTHON)" $(VENV); \
		$(BIN)/python -c '$(DEVELOPMENT)' > $(VENV)/dev.txt; \
		uv pip install --python $(BIN)/python --requirement $(VENV)/dev.txt --editable .; \
	else \
		set -ex; test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV); \
		$(BIN)/python -c '$(DEVELOPMENT)' > $(VENV)/dev.txt; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/dev.txt --editable .; \
	fi
	@touch $@

demo: $(INSTALLED)
	@rm -rf $(DEMO)
	$(BIN)/skillgit init $(DEMO) --env searchqa
	$(BIN)/skillgit -C $(DEMO) train demo --run demo
	@echo
	@echo "The run is a git repository in $(DEMO). To type the commands above there:"
	@echo "  . $(BIN)/activate && cd $(DEMO)"
	@echo "  git log --graph --oneline run/demo"

lint: $(INSTALLED)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

check: lint
	$(BIN)/pytest -q -n auto -m "not slow"

test: lint
	$(BIN)/pytest -q -n auto

bench: $(patsubst tests/bench/%.py,bench-%,$(filter-out %/measure.py,$(wildcard tests/bench/*.py)))

bench-%: $(INSTALLED)
	@$(BIN)/python tests/bench/$*.py

docs: $(INSTALLED)
	$(BIN)/pytest -q tests/test_docs.py
