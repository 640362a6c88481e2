PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RANKS  ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo bench test filecheck unit long check docs clean

help: ## list these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.installed ## make the virtual environment with the pinned development set

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup ## score a data set under encryption on RANKS=2 processes
	$(BIN)/python examples/logistic_regression.py --ranks $(RANKS)

bench: setup ## time the ops of CKKS and each kernel, with one thread: tables, JSON and plot
	$(BIN)/python benchmarks/ckks_ops.py --json build/bench.json
	$(BIN)/python benchmarks/plot.py build/bench.json build/bench.svg
	$(BIN)/python benchmarks/roofline.py --json build/roofline.json

test: setup check filecheck unit ## types, style, IR tests and unit tests

filecheck: setup ## IR tests: lit and FileCheck
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/lit -s tests/filecheck

unit: setup ## unit tests: pytest
	$(BIN)/pytest

long: setup ## differential and precision tests on many examples, and at N = 2^14
	$(BIN)/pytest -m long --durations=0

check: setup ## ruff and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: setup ## regenerate the references under docs/
	$(BIN)/python docs/generate.py

clean: ## remove what the other targets made
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis
