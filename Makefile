# Two commands for a fresh machine: `make figures` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: figures test test-all lint clean

figures: .venv/.figures
	$(BIN)/trf figures --out figures

test: .venv/.dev
	$(BIN)/python -m pytest

test-all: .venv/.dev
	$(BIN)/python -m pytest -m "slow or not slow"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# torch is installed first and pinned, so that nothing later pulls another build of it.
.venv/.torch: constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt torch
	touch $@

.venv/.figures: .venv/.torch pyproject.toml
	$(BIN)/pip install -q -c constraints.txt -e ".[nn,plot]"
	touch $@

.venv/.dev: .venv/.torch pyproject.toml
	$(BIN)/pip install -q -c constraints.txt -e ".[nn,plot,notebooks,dev]"
	touch $@ .venv/.figures

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
