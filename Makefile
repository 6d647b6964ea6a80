VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: test test-long lint format docs bench dist clean

test: lint  ## lint, types and tests: what CI runs
	$(BIN)/python -m pytest -n auto -m "not long"

test-long: $(VENV)/.installed  ## the many-times versions of the slow tests
	$(BIN)/python -m pytest -n auto -m long

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed  ## rewrite the tables that are made from the registry
	$(BIN)/python docs/generate.py

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/loss_cpu.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/loader.py
	$(BIN)/python benchmarks/train_cpu.py

dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
