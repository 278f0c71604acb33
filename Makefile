# Two commands: `make demo` and `make test`. Both set everything up first.
#
#   make demo STEPS=8 SEED=0      train the embedded model, print before -> after, write a report
#   make demo-rlvr SEED=0         train the embedded model by a verifier alone, print pass@k before -> after
#   make test                     format, lint, types, layers, tests
#   make measure                  the slow measurements behind the figures in README.md
#   make soak MINUTES=20          a server under full load of everything at once, watched until the end
#
# TORCH_INDEX: where to take torch from, if not from the default package index, for example a CPU-only index.

PYTHON ?= python3
STEPS ?= 8
MINUTES ?= 20
SEED ?= 0
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CALM := OMP_WAIT_POLICY=passive

.PHONY: setup demo demo-rlvr test check format measure soak clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) --constraint constraints.txt torch
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: setup
	$(CALM) $(BIN)/groundrule demo --steps $(STEPS) --seed $(SEED)

demo-rlvr: setup
	$(CALM) $(BIN)/groundrule demo-rlvr --seed $(SEED)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: check
	$(CALM) $(BIN)/python -m pytest

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

measure: setup
	for script in grpo_step generate train_step gather_score tree_update startup growth; do \
		OMP_NUM_THREADS=2 $(CALM) $(BIN)/python benchmarks/$$script.py || exit 1; done
	$(CALM) $(BIN)/python benchmarks/demo_seeds.py --seeds 0 1 2
	$(CALM) $(BIN)/python benchmarks/judge_bounds.py

soak: setup
	$(CALM) $(BIN)/python benchmarks/soak.py --minutes $(MINUTES)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache
