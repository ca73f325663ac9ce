# make demo: see the whole walk. make test: everything that runs without Docker or an engine.
# make review BASE=main: what a reviewer must look at in this change of the catalog.
PYTHON ?= python3
VENV   ?= .venv
BASE   ?= main
BIN    := $(VENV)/bin

.PHONY: demo test lint review clean

demo: $(VENV)/.demo
	$(BIN)/sparkrecipes rehearse agents

# Two processes, as CI has two cores; a file stays in one, since its tests share what they start.
test: $(VENV)/.dev lint
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

review: $(VENV)/.demo
	$(BIN)/sparkrecipes review $(BASE) --catalog catalog

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
