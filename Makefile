VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
QUICKLY := --quiet --no-compile

.PHONY: demo test check test-long lint format docs site bench dist clean

demo: $(VENV)/.demo  ## the whole idea on small digits in about a minute, and a report of it
	$(BIN)/noiseproof bench quick --out demo/runs
	$(BIN)/noiseproof report demo/runs --beside results --out demo/report.html \
		--title "noiseproof quick"

test: lint  ## lint, types and tests: what CI runs
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

check: lint  ## while editing: lint, types and of all tests the quick ones, a few of each
	$(BIN)/python -m pytest -n auto --dist worksteal --quick

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

site: $(VENV)/.installed  ## the documentation as pages to read in a browser, without a network: site/index.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -d build/doctrees docs site

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/loss_cpu.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/loader.py
	$(BIN)/python benchmarks/train_cpu.py

dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

$(VENV)/.demo: pyproject.toml constraints.txt  ## what the demo needs and no more
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(QUICKLY) --constraint constraints.txt --editable ".[report]"
	touch $@

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip  # which takes half the time of older ones
	$(BIN)/python -m pip install $(QUICKLY) --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null || true  # on all cores, where pip takes one
	touch $@

clean:
	rm -rf $(VENV) dist demo site build docs/losses docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
