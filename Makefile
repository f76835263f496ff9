# Each target sets up all that it needs in a fresh clone: a virtual environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

BASE ?= main
# One waits for clusters, servers and signals where two compute.
PROCESSES ?= 3
# What pytest makes of assertions is kept for the next run, also where Python is to keep nothing.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test quick other slow check docs screenshots bench clean

WORKLOAD := matmul m=512 n=512 k=512 epilogue="gelu(x + bias[n])"

demo: .venv/demo.stamp
	$(BIN)/tilewright tune $(WORKLOAD) --trials 128 --seconds 45 --db tuning.db

test: check
	$(BIN)/python -m compileall -q -x '/test_[^/]*$$|/conftest' spaces measure costmodel scheduler tests  # once, for all
	$(BIN)/python -m pytest -n $(PROCESSES)

# The tests that a change since the branch left BASE touches, without emulator, clusters, command line;
# the nearest first, and none that would begin after 70 s.
quick: .venv/dev.stamp
	touched=$$($(BIN)/python -m tests.touched $(BASE)) || exit 1; \
	test -z "$$touched" || $(BIN)/python -m pytest -n 2 --within 70 -rs $$touched

# What depends on the instruction set, once more for the one that this machine has not, or not alone.
OTHER = $(shell $(BIN)/python -m tests.foreign_isa)
OF_ISA = tests/spaces/cpu tests/measure/cpu/test_tables.py tests/measure/cpu/test_mutants.py \
	tests/experiments/search/test_shapes.py

other: .venv/dev.stamp
	test -z "$(OTHER)" || TILEWRIGHT_ARCH=$(OTHER) $(BIN)/python -m pytest -n 2 $(OF_ISA)

slow: .venv/dev.stamp
	$(BIN)/python -m pytest -m slow

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	mkdir -p .venv/tree/tilewright
	ln -sfn $(addprefix $(CURDIR)/,$(wildcard scheduler/face/tilewright/*.*) spaces measure costmodel scheduler) .venv/tree/tilewright/
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 0 tests/test_docstrings.py

docs: .venv/dev.stamp
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build/html

# The pictures of the page on reports: a suite is tuned for five minutes.
screenshots: .venv/dev.stamp
	$(BIN)/python docs/screenshots.py

bench: .venv/dev.stamp
	$(BIN)/python -m experiments.cpu_matmul

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	@touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[dev,docs,torch,models,cuda,postgres,ray,data,plot,experiments]'
	@touch $@ .venv/demo.stamp

clean:
	rm -rf .venv build dist *.egg-info
