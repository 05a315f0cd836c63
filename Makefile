# make demo: a fresh machine to a refined kernel.  make test: lint, types, tests.  make gpu: the same of a GPU.
# make site: docs/ as build/site.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test gpu docs site lint clean

demo: $(VENV)/installed
	BIN=$(BIN) bash demo/run.sh

test: $(VENV)/installed lint # four workers on two cores: most wait for processes that they started
	$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder

gpu: # every kernel on this machine's GPU, and its tests; elsewhere than in .venv: make gpu BIN=DIRECTORY_OF_PYTHON3
	$(BIN)/python3 -m tests.gpu_gate $(GATE)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/proselint check *.md docs/[!o]*.md docs/opinfo.md docs/platforms/*.md
	$(BIN)/mypy
	$(BIN)/mypy mkdocs_hooks.py

docs: $(VENV)/installed
	$(BIN)/python -m enable.reference > docs/cli.md
	$(BIN)/python -m enable.reference docs/results/library.json > docs/operators.md
	$(BIN)/python -m tests.gpu_gate.page

site: $(VENV)/installed
	$(BIN)/mkdocs build --strict

# torch comes first and alone: with it in place nothing else asks for another build of it.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

clean:
	rm -rf $(VENV) .demo .enable build dist *.egg-info
