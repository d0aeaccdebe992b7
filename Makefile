# The two commands a newcomer needs: `make run` and `make test`. Everything else is for developers.
#   make test-slow                             the tests that take long, which `make test` leaves out and CI runs
#   make run ARGS="--no-ui --run-id first"     further flags for rl-tui
#   make run CONFIG=config/ppo/Acrobot.yaml    another configuration
#   make run TORCH=cpu                         torch without CUDA, the default on Linux without an NVIDIA driver
#   make shell                                 a shell with rl-tui on its PATH
#   make test PYTHON=python3.12                another interpreter (3.11 or newer)
#   make gpu DEVICE=cuda:1                     the checks that need a GPU, on another one than the first
#   make test-all                              every interpreter of PYTHONS that works here, each in a .venv-3.X

SHELL := /bin/bash
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
VENV := .venv
BIN := $(VENV)/bin
CONFIG ?= config/ppo/CartPole.yaml
ARGS ?=
TORCH ?= auto
DEVICE ?= cuda
INSTALLED_FROM := pyproject.toml constraints.txt $(wildcard engine/sampling/environments/unity/*.proto)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# Python compiles a module when it is first imported, and keeps the result also where the environment forbids that: pip
# would compile all 12,000 of them, and the hundred programs that the tests start would each compile the project.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run shell test test-all test-slow check unit bench faults gpu screenshots clean

run: $(VENV)/.ready
	@$(BIN)/rl-tui $(CONFIG) $(ARGS)

shell: $(VENV)/.ready
	@echo "rl-tui is on the PATH of this shell; exit leaves it."
	@VIRTUAL_ENV="$(abspath $(VENV))" PATH="$(abspath $(BIN)):$$PATH" $${SHELL:-/bin/sh} || true

test: check unit

# A shim of pyenv is found also for a version that it does not have: only what runs counts.
test-all:
	@passed=; failed=; missing=; \
	for python in $(PYTHONS); do \
	    version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || \
	        { missing="$$missing $$python"; continue; }; \
	    echo "Testing with $$python, in .venv-$$version"; \
	    if $(MAKE) test PYTHON=$$python VENV=.venv-$$version; \
	        then passed="$$passed $$python"; else failed="$$failed $$python"; fi; \
	done; \
	echo "passed:$${passed:- none}; failed:$${failed:- none}; not found:$${missing:- none}"; \
	test -n "$$passed" -a -z "$$failed"

check: $(VENV)/.ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

# Three at once on two cores: a third of the time tests wait, for terminals and processes.
unit: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

test-slow: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m "(slow or hypothesis) and not faults and not gpu" --hypothesis-profile "many examples" \
	    -n 3 --dist worksteal --timeout 600 $(ARGS)

bench: $(VENV)/.ready-dev
	$(BIN)/python -m tests.benchmarks.startup
	$(BIN)/python -m tests.benchmarks.throughput $(ARGS)
	$(BIN)/python -m tests.benchmarks.curious
	$(BIN)/python -m tests.benchmarks.snapshots
	$(BIN)/python -m tests.benchmarks.attaching
	$(BIN)/python -m tests.benchmarks.attached
	$(BIN)/python -m tests.benchmarks.unity_wire
	$(BIN)/python -m tests.benchmarks.uneven_workers
	$(BIN)/python -m tests.benchmarks.unity_run
	$(BIN)/python -m tests.benchmarks.unity_returns

faults: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m faults --timeout 3600 $(ARGS)

# Without a CUDA device it says so in one line. DEVICE=cpu tries out the tests themselves.
gpu: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.gpu --device $(DEVICE) $(ARGS)

# Of the demo, and of runs that are recorded here and now: of two behaviors, three reward signals, groups and two ranks.
screenshots: $(VENV)/.ready-dev
	$(BIN)/rl-tui screenshots/two_behaviors.yaml --no-ui --run-id two-behaviors --force --seed 0
	$(BIN)/rl-tui screenshots/three_streams.yaml --no-ui --run-id three-streams --force --seed 1
	$(BIN)/rl-tui poca/Rescue --no-ui --run-id rescue --force --seed 1
	$(BIN)/rl-tui ppo/CartPole --ranks 2 --no-ui --run-id ranks --force --seed 1
	$(BIN)/python -m screenshots.make_screenshots overview=results/two-behaviors/events.jsonl \
	    groups=results/rescue/events.jsonl ranks=results/ranks/events.jsonl \
	    streams=results/three-streams/events.jsonl --until 0.85 $(ARGS)
	$(BIN)/python -m screenshots.make_game_screenshots

clean:
	rm -rf $(VENV) .venv-3.* build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

# torch comes first and alone: it is by far the largest, and the build that was chosen is then kept.
$(VENV)/.ready-torch:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "rl-tui needs Python 3.11 or newer; name one with PYTHON=python3.12" >&2; exit 1; }
	@test -d src/rl_tui/engine || \
	    { echo "src/rl_tui/engine must be a symbolic link: git config core.symlinks true; git checkout -- src" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install_torch.py $(TORCH) $(PIP)
	@touch $@

$(VENV)/.ready: $(VENV)/.ready-torch $(INSTALLED_FROM)
	@echo "Setting up $(VENV): everything else ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-torch $(INSTALLED_FROM)
	@echo "Setting up $(VENV): everything else, with the tools for checks, tests and benchmarks ..."
	@$(PIP) --editable '.[dev,bench,box2d,mujoco]'
	@touch $(VENV)/.ready $@
