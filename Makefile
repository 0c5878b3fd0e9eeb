# The few verbs of Slipway. `make up` and `make test` need a Debian machine, root and nothing else installed by hand.
SHELL := /bin/bash
PY := .venv/bin/python
STACK ?= $(if $(CONTEXT),cluster,dev)
KEY := .slipway/ssh/id_ed25519
# Every verb names its cluster: what KUBECONFIG says is for clusters of your own.
OWN := $(if $(CONTEXT),--context $(CONTEXT))
LOCAL := --kubeconfig .slipway/kubeconfig --context slipway-local
# The checkout stays clean of bytecode; cli/__main__.py keeps it in the same folder.
export PYTHONPYCACHEPREFIX := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slipway/bytecode
# Where it is set, Python writes no bytecode to that folder either, and each process compiles all its imports again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: up down preview test lint-and-unit test-cluster test-slurm test-unit unit quick lint soak bench requirements golden reference release

up: .venv/ready $(KEY)  ## from a bare machine to a finished Slurm job; CONTEXT=name REGISTRY=host/path: on a cluster of your own (YES=1: unasked, even where data is deleted)
	@$(PY) -m local quickstart --stack $(STACK) --key $(KEY) $(OWN) $(if $(REGISTRY),--registry $(REGISTRY)) \
		$(if $(PLAIN_HTTP),--plain-http) $(if $(YES),--yes) $(if $(OPTIONS),-- $(OPTIONS))

down: .venv/ready  ## end the local cluster: only what `make up` started
	@$(PY) -m local down

preview: .venv/ready $(KEY)  ## the policies, and what `make up` would change, Slurm's files line by line
	@$(PY) -m cli preview --stack $(STACK) $(or $(OWN),$(LOCAL))

test: .venv/ready $(KEY)  ## everything: lint, unit, plan, real Slurm, real Kubernetes
	@$(PY) -m local prepare  # packages and images once, before two want them
	@SLIPWAY_PREPARED=1 $(MAKE) --no-print-directory --keep-going --jobs 3 test-cluster test-slurm lint-and-unit

# Three rows at once. Tests of the dev stack follow one another, so they are the longest row and go first at the processors. Those of real
# Slurm mostly wait, and are spread over processes, a module at a time: first the verbs' tests, with namespaces of their own on the local
# cluster, before others want to take its programs away. What only computes is one process: each further one would collect all tests again. It
# is done long before the others, so it takes what they leave.
SPREAD := 4
VERBS := tests/cluster/test_command.py tests/cluster/test_own_cluster.py
lint-and-unit:
	@$(MAKE) --no-print-directory lint && $(MAKE) --no-print-directory test-unit

test-cluster: .venv/ready $(KEY)  ## the row of `make test` on the dev stack, one test after another
	@$(PY) -m pytest tests/cluster $(VERBS:%=--ignore=%)

test-slurm: .venv/ready $(KEY)  ## the row on real Slurm, several modules at a time
	@nice -n 8 $(PY) -m pytest -n $(SPREAD) --dist loadfile --no-loadscope-reorder $(VERBS) tests/slurm

test-unit: .venv/ready $(KEY)  ## the row that needs no Slurm: an API server, pure functions, plans
	@nice -n 19 $(PY) -m pytest tests/apiserver tests/unit tests/plan

unit: .venv/ready $(KEY)  ## pure functions and plans, without Slurm or Kubernetes: about a quarter of an hour
	@$(PY) -m pytest tests/unit tests/plan

quick: .venv/ready $(KEY)  ## of those the tests that your change can break, nearest first, for 45 seconds
	@$(PY) -m tests.quick

lint: .venv/ready  ## ruff, pyright strict, layers, shellcheck, actionlint, Vale, dead code, the reference of the stack file's keys
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/lint-imports --no-cache && .venv/bin/pyright
	@command -v shellcheck >/dev/null || { DEBIAN_FRONTEND=noninteractive dpkg --force-confold --configure -a </dev/null; apt-get update -qq && \
		apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends shellcheck; } >/dev/null
	@git ls-files -z ':!*.py' | xargs -0 grep -lE '^#!.*[/ ](ba)?sh$$' | xargs shellcheck
	@git ls-files '*.github/workflows/*' | xargs $(PY) -m local.actionlint
	@git ls-files '*.md' '*.py' ':!tests' ':!docs/reference/stack-file.md' ':!configs/cluster_args.py' | xargs $(PY) -m local.prose  # the last two are generated from docstrings
	@found=$$($(PY) -m vulture) || [[ $$? == 3 ]] || exit 1; \
		! grep -E "unused (class|function|method|property)" <<<"$$found"  # fields are read by name: of a model, a struct, a template
	@$(PY) -m configs.reference check

# Five minutes of silence, Kubernetes' and Slurm's own minutes, every moment of a power-down, a hundred slurmds, a million steps of the laws,
# five minutes of fuzzing. Each test's docstring names the quick one in `make test` that holds the same promise.
soak: .venv/ready $(KEY)  ## tests that are long by nature, at full length; `make test` does not run them
	@$(PY) -m local prepare
	@$(PY) -m pytest --timeout 7200 tests/soak

bench: .venv/ready $(KEY)  ## the figures of docs/explain/benchmarks.md, printed one by one and as JSON in .slipway/bench.json; COLD=1 adds the bare-machine one
	@$(PY) -m tests.bench $(if $(COLD),--cold)

golden: .venv/ready  ## write the golden files again; read their diff like code
	@SLIPWAY_GOLDEN=write $(PY) -m pytest -q tests/plan tests/unit/configs/test_slurm.py tests/unit/configs/test_nfs_server.py

reference: .venv/ready  ## write docs/reference/stack-file.md, the stack files' JSON schema and SlurmClusterArgs again, after a change of the models
	@$(PY) -m configs.reference write

release: .venv/ready  ## keep this version's plans, so that later versions are tested against them; VERSION=0.2.0
	@$(PY) -m tests.support.releases $(or $(VERSION),$(error give the version: make release VERSION=0.2.0))

requirements: .venv/ready  ## pin again after a change of pyproject.toml
	@.venv/bin/uv pip compile -q --python-version 3.11 pyproject.toml -o requirements.txt
	@.venv/bin/uv pip compile -q --python-version 3.11 --group controllers -o images/controllers/requirements.txt
	@.venv/bin/uv pip compile -q --python-version 3.14 --group root -o images/root/requirements.txt
	@.venv/bin/uv pip compile -q --python-version 3.11 pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt

.venv/ready: requirements-dev.txt local/bootstrap.sh
	@local/bootstrap.sh

$(KEY):
	@mkdir -p -m 700 .slipway && mkdir -p $(@D) && ssh-keygen -q -t ed25519 -N "" -C slipway-dev -f $@
