# Everything runs in the virtual environment .venv, which `make install` creates.
#   make install PYTHON=/path/to/python3.11   to choose the interpreter
#   make test ARGS='-m "not slow" tests/meta' to pass arguments on to pytest
#   make test ARGS=--randomly-seed=7          to have the order of a run that printed that seed
#   make test JOBS=4                          to test in four processes; 0 is without any others

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests wait for other processes half of the time. They start some hundred, which share bytecode.
JOBS := 3
CANDIDATES = $(or $(PYTHON),python3.11 python3 python3.12 python3.13)
# A quarter of what is installed, which few import: Python compiles it where they do.
RARE := tests?|testing|sympy|networkx|_inductor|serve|llm|autoscaler|databricks|fontTools|onnxruntime|pip|setuptools|mypyc?
PIP := python -m pip -qq --disable-pip-version-check
CHECK_PYTHON := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))

# Creates the virtual environment $(1), unless it is there, with the first interpreter that will do.
define create_venv
@test -x $(1)/bin/pip && exit 0; \
for python in $(CANDIDATES); do \
  if "$$python" -c '$(CHECK_PYTHON)' 2>/dev/null; then exec "$$python" -m venv $(1); fi; \
done; \
echo "metasched needs Python 3.11 to 3.13 with its venv module, and found none as $(CANDIDATES):" \
  "install python3.11 and python3.11-venv, or name one with PYTHON=/path/to/python3.11" >&2; exit 1
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help install demo results test test-service test-slurm test-nodes test-image mutations fuzz soak lint docs counts format pins clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## Create .venv and install metasched with its tools into it

$(STAMP): pyproject.toml constraints.txt
	$(call create_venv,$(VENV))
	@echo "Installing metasched into $(VENV); this takes 2 to 3 minutes the first time."
	@$(BIN)/$(PIP) install --no-compile -c constraints.txt gymnasium numba numpy pyyaml scipy
	@$(BIN)/python -m cluster_env.warm &  # beside pip, which uses one core
	@$(BIN)/$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' | { read -r site; \
	  printf '%s\n' '$(CURDIR)' '$(CURDIR)/tune_jobs/api' > "$$site/metasched.pth"; }  # type checkers follow no import hook
	@$(BIN)/python -m compileall -qq -j 0 -x '/($(RARE))/' $(VENV)/lib >/dev/null 2>&1 || true  # faster than pip's
	@echo "Compiling the simulators once, so that no command and no worker has to wait for it."
	@$(BIN)/python -m tune_jobs.warm
	@touch $@
	@echo "Installed. Next: make demo, or $(BIN)/metasched --help."

demo: install ## Train a scheduler, compare it with rules, replay a log, adapt to unseen tasks
	@$(BIN)/metasched demo

results: install ## Make the recorded results of DeepRM's world (under three hours on two cores; goes on where it was); NAME=ppo for one
	@$(BIN)/metasched results $(or $(NAME),all)

test: install ## Run the tests in random order (about eight minutes on two cores); ARGS='...' goes to pytest
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-service: install ## Run the tests that start clusters and kill processes as well (minutes)
	@METASCHED_SERVICE=1 $(BIN)/python -m pytest -m service $(ARGS)

test-slurm: install ## Steer a real Slurm on loopback (tests/slurm/README.md); skipped where its programs are missing
	@METASCHED_SLURM=1 $(BIN)/python -m pytest -m slurm $(ARGS) tests/slurm

test-nodes: install ## Train on nodes in network namespaces, with delays and TLS (root, iproute2, openssl; minutes); ARGS='-k delay1ms'
	@METASCHED_NODES=1 $(BIN)/python -m pytest -m nodes $(ARGS) tests/nodes

test-image: ## Build the image without Docker or a registry, and work in it (root, buildah, debootstrap; half an hour)
	@docker/test-image.sh

mutations: install ## Put faults into a copy of the program and see that tests notice them (half an hour); ARGS='--only WORD'
	@$(BIN)/python -m tests.mutations.run $(ARGS)

fuzz: install ## Damage job logs at random and read them, for ten minutes; SECONDS=60 for less
	@METASCHED_FUZZ_SECONDS=$(or $(SECONDS),600) $(BIN)/python -m pytest -q -s --timeout 0 tests/cluster_env/workloads/test_reader_fuzz.py

soak: install ## Train for half an hour and fail if a process grows; ARGS='--minutes 5' for less
	@$(BIN)/python -m tests.soak $(ARGS)

lint: install ## Check style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: install ## Build the documentation as a site into build/docs; a warning fails
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html -c tune_jobs/docs . build/docs
	@echo "Open build/docs/tune_jobs/docs/index.html"

counts: install ## Print lines, functions and words of each package
	@$(BIN)/python -m tests.counts

format: install ## Mend what ruff can mend, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pins: ## Write constraints.txt anew from a fresh environment; UPGRADE=1 takes the newest versions
	@rm -rf $(VENV)-pins
	$(call create_venv,$(VENV)-pins)
	@echo "Installing into $(VENV)-pins; this takes about 3 minutes."
	@$(VENV)-pins/bin/$(PIP) install $(if $(UPGRADE),,-c constraints.txt) setuptools torch==2.13.0 -e '.[dev]'
	@sed '/^[^#]/,$$d' constraints.txt > $(VENV)-pins/constraints.txt
	@$(VENV)-pins/bin/$(PIP) freeze --all --exclude pip --exclude-editable \
	  | sed -E -e 's/\+cpu$$//' -e 's/^(ortools|protobuf)==.*/&; python_version < "3.13"/' \
	  >> $(VENV)-pins/constraints.txt
	@mv $(VENV)-pins/constraints.txt constraints.txt && rm -rf $(VENV)-pins
	@echo "Wrote constraints.txt. Next: make test, which installs these versions."

clean: ## Remove .venv, caches and build leftovers; runs/ stays
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
	@rm -rf $(VENV) $(VENV)-pins build dist *.egg-info .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
