# make demo: set up, then run the built-in study. make test: set up, then the tests, without the slow ones.
PYTHON ?= python3.11
VENV ?= .venv
H2H = $(VENV)/bin/h2h

.PHONY: setup demo test test-all check clean

setup: $(VENV)/ready

# torch first and alone: a bare requirement would bring gigabytes of CUDA packages
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(VENV)/bin/python -m pip install --quiet -c constraints.txt --editable ".[dev]"
	touch $(VENV)/ready

demo: setup
	$(H2H) run softmax_one

check: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test: check
	$(VENV)/bin/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: check
	$(VENV)/bin/python -m pytest -n auto --dist loadfile

clean:
	rm -rf $(VENV) .ci-venv dist
