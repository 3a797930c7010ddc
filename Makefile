# `make demo` and `make test` do all they need on a fresh machine: Python 3.11 or later and this folder.
#
#   make demo           train an agent in a dream, play it in the real environment (7 minutes on 2 cores)
#   make test           linters, type checks and tests (10 minutes on 2 cores)
#   make lint           linters and type checks alone
#   make setup          only install, into .venv
#   make clean          remove what was built, and .venv
#
# Variables: DOMAIN=alfworld, PYTHON=python3, VENV=.venv

DOMAIN ?= alfworld
PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
INSTALLED := $(VENV)/.installed
TYPED := build/typed/dreamgym_envs

# textworld asks for jericho, and jericho for spaCy, which ALFWorld never uses: half a gigabyte. So these three come
# without what they ask for, and what ALFWorld does use stands beside them.
ENGINES := alfworld textworld jericho
ENGINE_NEEDS := fast-downward-textworld tatsu networkx more_itertools hashids mementos prompt_toolkit termcolor tqdm

# One thread a process: the tests and the models run a process a core.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: setup demo test lint clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed, $(PYTHON) is older; run: make setup PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt \
		--editable '.[fast,webshop,dev]' $(ENGINE_NEEDS)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --no-deps $(ENGINES)
	@touch $@

demo: $(INSTALLED)
	$(BIN)/dreamgym demo $(DOMAIN)

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --durations 10

# mypy is to see the package as it is installed, with wrappers and assets inside.
lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@rm -rf $(TYPED) && mkdir -p $(TYPED)
	@ln -s $(CURDIR)/dreamgym_envs/* $(CURDIR)/wrappers $(CURDIR)/assets $(TYPED)/
	cd $(TYPED)/.. && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache -p dreamgym_envs

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
