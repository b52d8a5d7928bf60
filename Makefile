# Everything runs in the virtual environment .venv, which `make install` creates.
#   make install PYTHON=/path/to/python3.11   to choose the interpreter
#   make test ARGS='-m "not slow" tests/meta' to pass arguments on to pytest

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CANDIDATES = $(or $(PYTHON),python3.11 python3 python3.12)
PIP := python -m pip -qq --disable-pip-version-check
CHECK_PYTHON := import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))

# Creates the virtual environment $(1), unless it is there, with the first interpreter that will do.
define create_venv
@test -x $(1)/bin/pip && exit 0; \
for python in $(CANDIDATES); do \
  if "$$python" -c '$(CHECK_PYTHON)' 2>/dev/null; then exec "$$python" -m venv $(1); fi; \
done; \
echo "metasched needs Python 3.11 or 3.12 with its venv module, and found neither as $(CANDIDATES):" \
  "install python3.11 and python3.11-venv, or name one with PYTHON=/path/to/python3.11" >&2; exit 1
endef

# Trains the run $(1) of the preset $(2), with the setting $(3), for $(4) iterations, unless it is done.
define train
  run=$(RESULTS)/$(1); \
  if [ "$$(sed -n '$$s/,.*//p' $$run/metrics.csv 2>/dev/null)" = $(4) ]; then echo "$$run is done"; \
  elif [ -d $$run ]; then $(BIN)/metasched train --resume $$run || exit; \
  else $(BIN)/metasched train $(2) --set $(3) --set training.iterations=$(4) \
    --seed $$seed --run $$run || exit; fi
endef

# Adapts to unseen tasks of the family $(1): $(3) times each the runs of MAML and joint training, once
# each the runs $(2), which know one task alone, and untrained policies.
define adapt
$(BIN)/metasched study '$(RESULTS)/$(1)-maml-*' '$(RESULTS)/$(1)-joint-*' --family $(1) --task-seed 1 \
  --seeds $(3) --out $(RESULTS)/adaptation
$(BIN)/metasched study '$(RESULTS)/$(2)-*' --scratch 3 --family $(1) --task-seed 1 --seeds 1 \
  --out $(RESULTS)/adaptation
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
RESULTS := runs/results
SEEDS ?= 0 1 2

PPO_SEEDS ?= 0 1 2 3 4
FAMILIES := objectives priorities workloads mixed
OBJECTIVES := slowdown completion_time utilization makespan bounded_slowdown \
  weighted_completion_time fair_slowdown

.PHONY: help install demo results results-ppo results-meta test test-service lint format pins clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## Create .venv and install metasched with its tools into it

$(STAMP): pyproject.toml constraints.txt
	$(call create_venv,$(VENV))
	@echo "Installing metasched into $(VENV); this takes 2 to 3 minutes the first time."
	@$(BIN)/$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib >/dev/null 2>&1 || true  # faster than pip's
	@echo "Compiling the simulators once, so that no command and no worker has to wait for it."
	@$(BIN)/python -m tune_jobs.warm
	@touch $@
	@echo "Installed. Next: make demo, or $(BIN)/metasched --help."

demo: install ## Train a scheduler, compare it with the heuristics, adapt another to an unseen task, draw the figures
	@$(BIN)/metasched demo

results: install ## Train what the README shows (about 40 minutes on two cores; goes on where it was) and draw it
	@for seed in $(SEEDS); do \
	  for load in 0.7 1.1 1.3; do \
	    $(call train,deeprm-$$load-$$seed,deeprm-released,task.workload.load=$$load --set evaluation.jobsets=1000,400); \
	  done; \
	  $(call train,fresh-0.7-$$seed,deeprm-fresh,task.world.rules=released --set training.since_column=true --set evaluation.jobsets=1000,800); \
	done
	$(BIN)/metasched figure deeprm-fig4 --runs "$(RESULTS)/*-*-*" --out $(RESULTS)/figures
	$(BIN)/metasched figure deeprm-fig6 --runs '$(RESULTS)/deeprm-0.7-*' --out $(RESULTS)/figures
	@for load in 0.7 1.1 1.3; do \
	  $(BIN)/metasched compare --policies "sjf,tetris,hold,$(RESULTS)/*-$$load-*" --loads $$load \
	    --out $(RESULTS)/figures/load-$$load; \
	done

results-ppo: install ## Train what the README shows of PPO (about an hour on two cores; goes on where it was) and draw it
	@for seed in $(PPO_SEEDS); do \
	  for load in 0.7 1.1 1.3 1.845; do \
	    $(call train,ppo-$$load-$$seed,deeprm-ppo,task.world.rules=released --set task.workload.load=$$load,400); \
	  done; \
	  $(call train,gen-$$seed,deeprm-generalist,task.world.rules=released,400); \
	  for objective in $(OBJECTIVES); do \
	    $(call train,obj-$$objective-$$seed,deeprm-ppo,task.world.rules=released --set task.workload.load=1.1 --set task.objective=$$objective,120); \
	  done; \
	done
	@for load in 0.7 1.1 1.3 1.845; do \
	  $(BIN)/metasched compare --policies "random,sjf,packer,tetris,hold,$(RESULTS)/ppo-$$load-*" \
	    --loads $$load --decode argmax --out $(RESULTS)/figures/ppo-$$load; \
	done
	$(BIN)/metasched compare --policies "sjf,packer,tetris,hold,$(RESULTS)/gen-*" --rules released \
	  --loads 0.1,0.3,0.7,1.1,1.3,1.845 --decode tuned --seed 2 --out $(RESULTS)/figures/gen
	@for window in 200 500; do \
	  $(BIN)/metasched compare --policies "sjf,packer,tetris,hold,$(RESULTS)/gen-*" --rules released \
	    --window $$window --decode tuned --seed 2 --jobsets 300 --out $(RESULTS)/figures/window-$$window; \
	done
	$(BIN)/metasched compare --policies "sjf,packer,tetris,hold,$(RESULTS)/gen-*" --rules released \
	  --window 700 --warmup 100 --decode tuned --seed 2 --jobsets 200 --out $(RESULTS)/figures/steady
	$(BIN)/metasched figure attainment --runs '$(RESULTS)/ppo-1.1-*' --decode argmax --out $(RESULTS)/figures/ppo
	$(BIN)/metasched figure deeprm-fig4 --table $(RESULTS)/figures/ppo/attainment.csv --out $(RESULTS)/figures/ppo
	$(BIN)/metasched figure deeprm-fig5 --runs '$(RESULTS)/obj-*' --decode argmax --out $(RESULTS)/figures
	$(BIN)/metasched figure deeprm-fig7 --runs '$(RESULTS)/ppo-1.1-*' --decode argmax --out $(RESULTS)/figures
	$(BIN)/metasched figure guard --runs '$(RESULTS)/ppo-1.1-*' --jobsets 200 --decode argmax --out $(RESULTS)/figures
	$(BIN)/metasched figure optimality-gap --runs '$(RESULTS)/ppo-0.7-*' --jobsets 40 --decode argmax --out $(RESULTS)/figures

results-meta: install ## Meta-train what the README shows (about two hours on two cores; goes on where it was) and draw it
	@for seed in $(PPO_SEEDS); do \
	  for family in $(FAMILIES); do \
	    if [ $$family = objectives ]; then maml=600 joint=495; else maml=400 joint=330; fi; \
	    $(call train,$$family-maml-$$seed,deeprm-maml,meta.family=$$family,$$maml); \
	    $(call train,$$family-joint-$$seed,deeprm-joint,meta.family=$$family,$$joint); \
	  done; \
	done
	@for seed in $(SEEDS); do \
	  $(call train,one-$$seed,deeprm-ppo,task.world.rules=released --set training.skip_connection=true,660); \
	  $(call train,short-one-$$seed,deeprm-ppo,task.world.rules=released --set training.skip_connection=true,440); \
	  $(call train,classes-one-$$seed,deeprm-ppo,task.world.rules=released --set training.skip_connection=true --set task.world.cluster.num_classes=3,440); \
	  $(call train,deeprm-0.7-$$seed,deeprm-released,task.workload.load=0.7,400); \
	done
	$(call adapt,objectives,one,3)
	$(call adapt,workloads,short-one,1)
	$(call adapt,priorities,classes-one,1)
	$(call adapt,mixed,classes-one,1)
	@for family in objectives workloads; do \
	  $(BIN)/metasched study '$(RESULTS)/deeprm-0.7-*' --family $$family --task-seed 1 \
	    --steps 0,3,10,30,60 --seeds 1 --out $(RESULTS)/adaptation || exit; \
	done
	$(BIN)/metasched specialists $(RESULTS)/priorities-joint-0 --task-seed 1 --runs $(RESULTS)/specialists \
	  --out $(RESULTS)/adaptation
	@for figure in adaptation adaptation-objectives adaptation-attainment adaptation-differences headroom; do \
	  $(BIN)/metasched figure $$figure --rows $(RESULTS)/adaptation --out $(RESULTS)/figures; \
	done
	@for figure in meta-curves inner-rates; do \
	  $(BIN)/metasched figure $$figure --runs '$(RESULTS)/*-maml-*' --out $(RESULTS)/figures; \
	done

test: install ## Run the tests (about ten minutes on two cores); ARGS='...' goes to pytest
	@$(BIN)/python -m pytest $(ARGS)

test-service: install ## Run the tests that start clusters and kill processes as well (minutes)
	@METASCHED_SERVICE=1 $(BIN)/python -m pytest -m service $(ARGS)

lint: install ## Check style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

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
	  | sed 's/+cpu$$//' >> $(VENV)-pins/constraints.txt
	@mv $(VENV)-pins/constraints.txt constraints.txt && rm -rf $(VENV)-pins
	@echo "Wrote constraints.txt. Next: make test, which installs these versions."

clean: ## Remove .venv, caches and build leftovers; runs/ stays
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
	@rm -rf $(VENV) $(VENV)-pins build dist *.egg-info .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
