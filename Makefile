# SPDX-License-Identifier: MIT
# bufferscope: every command a user or developer needs. `make help` lists them.
# No logic lives here: a target names what it needs and calls the part that does it.

PYTHON := .venv/bin/python
V ?= 0
export V

.DEFAULT_GOAL := help
.PHONY: help experiment parameters sweep figures advise advise-parameters deploy replay import export build compile kernel p4 test test-long test-all test-programs coverage check lint format bench clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 19

experiment: deploy ## run one experiment: make experiment CC=cubic FLOWS=16 BUF=0.5bdp (see make parameters)
	@$(PYTHON) -m experiments run --make  # reads the parameters from make itself: none passes through a shell

parameters: .venv/ready ## explain every parameter of make experiment, with defaults
	@$(PYTHON) -m experiments parameters

sweep: build/deployed ## run a sweep, or go on with it: make sweep SPEC=experiments/specs/... [SMOKE=1] [CLOCK=real] [JOBS=2] [INVENTORY=path, of labs]
	@$(PYTHON) -m experiments.sweep run --make  # reads the parameters from make itself, as above

figures: deploy ## run what is missing for a paper's figures, and draw them: make figures PAPER=spang2021 [FIGURE=5a] [SMOKE=1] [CLOCK=real] [PUBLISH=1]
	@$(PYTHON) -m experiments.figures --make  # reads the words from make itself, as above

advise: .venv/ready ## what buffer a link needs by each rule: make advise RATE=100gbit RTT=100ms FLOWS=10000 CC=reno UTIL=0.99
	@$(PYTHON) -m analysis advise --make  # reads the parameters from make itself, as above

advise-parameters: .venv/ready ## explain every parameter of make advise, with defaults
	@$(PYTHON) -m analysis advise parameters

deploy: build/deployed ## install what hosts need: make deploy [TARGET=soft|bmv2|tofino] [INVENTORY=path, of a testbed or of labs]; nothing is done twice
	@$(if $(filter-out soft,$(TARGET))$(INVENTORY)$(TOLD_TO_DEPLOY),$(PYTHON) -m experiments deploy --make)

replay: .venv/ready ## rebuild every derived file of a run from its raw ones: make replay RUN=results/latest [FORCE=1]; with BUF= MODE= ECN_THRESHOLD= RATE=: its arrivals through another queue
	@$(PYTHON) -m experiments replay --make  # reads RUN from make itself, as above

import: .venv/ready ## somebody else's captures as a run: make import FROM=trace-directory OUTPUT=results/theirs RATE=10gbit RTT=1.2ms
	@$(PYTHON) -m analysis import --make  # reads its words from make itself, as above

export: .venv/ready ## a run in other formats: make export RUN=results/latest FORMAT=csv|parquet|pcapng|flent|telemetry-report OUTPUT=path
	@$(PYTHON) -m analysis export --make  # reads its words from make itself, as above

build: ## compile the switch, the collector and the tracer into build/
	@ansible/locked.sh $(MAKE) --no-print-directory compile

compile:
	@$(MAKE) --no-print-directory -C softswitch
	@$(MAKE) --no-print-directory -C collector
	@$(MAKE) --no-print-directory -C hosts

kernel: build/deployed ## build the kernel of the virtual-time lab, minutes once (KERNEL_PACKAGE=linux-source-X, KERNEL_SOURCE=path: kept until another is given)
	@$(PYTHON) -m virtual.kernel --make  # reads which source from make itself, as above

p4: .venv/ready ## compile the P4 program again (needs p4c) and say what changed
	@$(PYTHON) -m p4src.compile

test: .venv/ready-dev build/deployed kernel test-programs ## set everything up and run the tests, all but the long ones
	@.ci/test pure software

test-long: .venv/ready-dev build/deployed kernel test-programs ## the tests that take minutes each: whole short sets, campaigns
	@.ci/test long

test-all: .venv/ready-dev build/deployed kernel test-programs ## all tests
	@.ci/test pure software long

coverage: .venv/ready-dev build/deployed kernel ## all tests but the long ones, with the coverage of Python and C
	@$(MAKE) --no-print-directory COVERAGE=1 test-programs
	@.ci/coverage

test-programs: build/deployed
	@ansible/locked.sh $(MAKE) --no-print-directory -C softswitch tests
	@ansible/locked.sh $(MAKE) --no-print-directory -C collector tests
	@ansible/locked.sh $(MAKE) --no-print-directory -C hosts tests

check: lint test ## what to run before a push: the linters, then the tests

lint: .venv/ready-dev ## formatters and linters, changing nothing
	@.ci/lint

format: .venv/ready-dev ## let the formatters decide layout
	@.ci/lint --fix

bench: .venv/ready-dev build/deployed ## measure what the documentation claims, beside its peers; writes bench/
	@$(PYTHON) -m bench

clean: ## remove everything that was built (results stay)
	@rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache

# What must be redone when what has changed.

# Goals that read stored runs or compute, for which any machine with Python will do.
ALONE := replay import export parameters advise advise-parameters

# `make deploy WORD=...` has every word read, so that none is ignored; of another goal they are that one's to read.
TOLD_TO_DEPLOY = $(and $(filter deploy,$(MAKECMDGOALS)),$(MAKEOVERRIDES))

# CC is a congestion control here: make would hand it down as the C compiler.
AS_IF_ALONE := env -u CC -u MAKEFLAGS -u MFLAGS

SOURCES := $(wildcard $(shell git ls-files softswitch collector hosts lib wire p4src/build ansible bench 2>/dev/null))

build/deployed: .venv/ready $(SOURCES)
	@echo "preparing this machine: packages and build (a minute or more the first time)"
	@ansible/bootstrap.sh deploy
	@mkdir -p build
	@$(AS_IF_ALONE) ANSIBLE_CONFIG=ansible/ansible.cfg ansible/locked.sh .venv/bin/ansible-playbook ansible/playbooks/deploy.yml
	@touch $@

.venv/ready: requirements.txt
	@ansible/bootstrap.sh requirements.txt $(if $(filter-out $(ALONE),$(MAKECMDGOALS)),,alone)
	@touch $@

.venv/ready-dev: requirements-dev.txt .venv/ready
	@ansible/bootstrap.sh requirements-dev.txt
	@touch $@
