# SPDX-License-Identifier: MIT
# bufferscope: every command a user or developer needs. `make help` lists them.
# No logic lives here: a target names its prerequisites and calls a program.

BUFFERSCOPE := .venv/bin/bufferscope
V ?= 0
export V
# ssh passes on locales that this machine may not have, and Ansible needs UTF-8.
export LC_ALL := C.UTF-8
JOBS := $(shell nproc)

.DEFAULT_GOAL := help
.PHONY: simulator help experiment parameters cc sweep figures advise advise-parameters deploy doctor replay results rm runs leftovers import export compare build compile kernel p4 image test test-long test-slice test-all test-programs test-long-programs coverage check lint format bench bench-programs clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 19

experiment: deploy ## run one experiment: make experiment CC=cubic FLOWS=16 BUF=0.5bdp (see make parameters)
	@$(BUFFERSCOPE) experiment --make  # reads the parameters from make itself, so that no shell interprets them

cc: .venv/ready ## list the congestion controls of each clock, where they come from, and their parameters
	@$(BUFFERSCOPE) cc

parameters: .venv/ready ## explain every parameter of make experiment, with defaults
	@$(BUFFERSCOPE) parameters

sweep: build/deployed ## run or resume a sweep: make sweep SPEC=experiments/specs/... [SMOKE=1] [CLOCK=real] [JOBS=2] [INVENTORY=path, of labs]
	@$(BUFFERSCOPE) sweep --make

figures: deploy ## run the missing part of a paper's sweeps and draw its figures: make figures PAPER=spang2021 [FIGURE=3,5a] [SMOKE=1] [CLOCK=real] [PUBLISH=1]
	@$(BUFFERSCOPE) figures --make

advise: $(if $(filter 1,$(MEASURE)),build/deployed,.venv/ready) ## say which buffer a link needs: make advise RATE=10gbit RTT=40ms FLOWS=500 [UTIL=0.99] [MEASURE=1] [ADVISE=full]
	@$(BUFFERSCOPE) advise --make

advise-parameters: .venv/ready ## explain every parameter of make advise, with defaults
	@$(BUFFERSCOPE) advise-parameters

deploy: build/deployed ## install packages and programs on hosts: make deploy [TARGET=soft|bmv2|tofino] [INVENTORY=path, of a testbed or of labs]; idempotent
	@$(if $(filter-out soft,$(TARGET))$(INVENTORY)$(DEPLOY_WORDS),$(BUFFERSCOPE) deploy --make)

replay: .venv/ready ## rebuild every derived file of a run from its raw files: make replay RUN=results/latest [FORCE=1]; with BUF= MODE= ECN_THRESHOLD= RATE=: send its arrivals through another queue
	@$(BUFFERSCOPE) replay --make

results: .venv/ready ## write results/index.html, a page of all runs and sweeps: make results [RESULTS=path]
	@$(BUFFERSCOPE) results --make

rm: .venv/ready ## remove runs and sweeps, or their large files: make rm OLDER_THAN=30d [KEEP=summary] [RESULTS=path] [YES=1], or RUN=results/NAME
	@$(BUFFERSCOPE) rm --make

runs: .venv/ready ## list the analysed runs, newest last: make runs [CC=cubic] [VALID=1] [CSV=1], or any other column
	@$(BUFFERSCOPE) runs --make

compare: .venv/ready ## show the numbers of runs and sweeps side by side, and draw their queues: make compare RUN=results/a WITH=results/b[,results/c] [OUTPUT=all.svg]
	@$(BUFFERSCOPE) compare --make

doctor: .venv/ready ## say what this machine can do (real and virtual time, BPF, BMv2, p4c, Slurm), and what adds the rest
	@$(BUFFERSCOPE) doctor

leftovers: .venv/ready ## list what killed commands left on this machine and in results/: make leftovers [RESULTS=path] [REMOVE=1]
	@$(BUFFERSCOPE) leftovers --make

import: .venv/ready ## make a run from another tool's captures: make import FROM=trace-directory OUTPUT=results/theirs RATE=10gbit RTT=1.2ms, or BEFORE=in.pcap AFTER=out.pcap of a router
	@$(BUFFERSCOPE) import --make

export: .venv/ready ## write a run in another format: make export RUN=results/latest FORMAT=csv|parquet|pcap|pcapng|flent|telemetry-report|qlog OUTPUT=path
	@$(BUFFERSCOPE) export --make

build: ## compile the switch, the collector and the hosts' programs into build/
	@ansible/locked.sh $(MAKE) --no-print-directory compile

compile:
	@$(MAKE) --no-print-directory -C softswitch
	@$(MAKE) --no-print-directory -C collector
	@$(MAKE) --no-print-directory -C captures
	@$(MAKE) --no-print-directory -C hosts

kernel: build/deployed ## build the kernel of the virtual-time lab; the first time takes minutes (KERNEL_PACKAGE=linux-source-X or KERNEL_SOURCE=path choose the source for all later builds, KERNEL=path a finished kernel)
	@$(BUFFERSCOPE) kernel --make

simulator: .venv/ready-ns3 build/deployed ## install ns-3 and build the simulator: make experiment SWITCH=ns3
	@ansible/locked.sh $(MAKE) --no-print-directory -C simulator

image: kernel ## make an OCI archive with everything that a run in virtual time needs, for podman and Docker: make image [OUTPUT=build/bufferscope.oci.tar]
	@$(BUFFERSCOPE) image --make

p4: .venv/ready ## compile the P4 program again (needs p4c) and list the changed files
	@$(BUFFERSCOPE) p4

test: .venv/ready-test build/deployed ## set everything up and run all tests but the long ones
	@$(MAKE) --no-print-directory --jobs=$(JOBS) kernel test-programs
	@.ci/test pure software

test-long: test-long-programs ## run the tests that take more than some seconds each: whole short sets, campaigns
	@.ci/test long

test-slice: test-long-programs ## run a part of the long tests, about ten minutes; the commit's files choose which
	@.ci/test slice

test-all: test-long-programs ## run all tests
	@.ci/test pure software long

coverage: .venv/ready-dev build/deployed kernel simulator ## run all tests but the long ones and measure the line coverage of Python and C
	@$(MAKE) --no-print-directory COVERAGE=1 test-programs
	@.ci/coverage

test-programs: build/deployed
	@ansible/locked.sh $(MAKE) --no-print-directory -C softswitch tests
	@ansible/locked.sh $(MAKE) --no-print-directory -C collector tests
	@ansible/locked.sh $(MAKE) --no-print-directory -C captures tests
	@ansible/locked.sh $(MAKE) --no-print-directory -C hosts tests

test-long-programs: .venv/ready-dev build/deployed
	@$(MAKE) --no-print-directory --jobs=$(JOBS) kernel test-programs simulator

check: lint test ## run the linters, then the tests: before every push

lint: .venv/ready-dev ## run formatters and linters without changing files
	@.ci/lint

format: .venv/ready-dev ## apply the formatters' layout and ruff's fixes, then run the linters
	@.ci/lint --fix

# What only the bench and tests run: generators of load.
bench-programs: build/deployed
	@ansible/locked.sh $(MAKE) --no-print-directory -C bench
	@ansible/locked.sh $(MAKE) --no-print-directory -C collector ../build/postcard_generator
	@ansible/locked.sh $(MAKE) --no-print-directory -C hosts ../build/tcp_event_generator

bench: .venv/ready build/deployed ## measure the documentation's claims, beside peers; writes results/bench/ (PARTS=switch,virtual: only these; PUBLISH=1: the documentation's page, too)
	@$(BUFFERSCOPE) bench --make

clean: ## remove build/, .venv and the caches of tools (results and the kernels in the user's cache stay)
	@rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache

# The rest keeps the environment and the deployed programs up to date.

# These goals need neither root nor our compiled programs, so they run on any machine with Python. Some need more:
# a replay through another queue compiles the switch core and an import of a capture its reader (gcc and make), and `advise MEASURE=1` needs all programs.
ALONE := doctor replay results rm runs leftovers compare import export parameters advise advise-parameters

# The words of `make deploy WORD=...`. deploy reads all of them and refuses unknown ones; other goals read their own words.
DEPLOY_WORDS = $(and $(filter deploy,$(MAKECMDGOALS)),$(MAKEOVERRIDES))

# CC is a congestion control on our command lines; make would pass it on as the C compiler.
AS_IF_ALONE := env -u CC -u MAKEFLAGS -u MFLAGS

SOURCES := $(wildcard $(shell git -c 'safe.directory=*' ls-files softswitch collector captures hosts lib wire p4src ansible bench 2>/dev/null))

build/deployed: .venv/ready $(SOURCES)
	@echo "preparing this machine: packages and build (a minute or more the first time)"
	@ansible/bootstrap.sh deploy
	@mkdir -p build
	@$(AS_IF_ALONE) ANSIBLE_CONFIG=ansible/ansible.cfg ansible/locked.sh .venv/bin/ansible-playbook ansible/playbooks/deploy.yml
	@touch $@

.venv/ready: requirements.txt pyproject.toml
	@ansible/bootstrap.sh requirements.txt $(if $(filter-out $(ALONE),$(MAKECMDGOALS)),,alone)
	@touch $@

.venv/ready-ns3: requirements-ns3.txt .venv/ready
	@ansible/bootstrap.sh requirements-ns3.txt
	@touch $@

.venv/ready-test: requirements-test.txt .venv/ready
	@ansible/bootstrap.sh requirements-test.txt
	@touch $@

.venv/ready-dev: requirements-dev.txt .venv/ready-test
	@ansible/bootstrap.sh requirements-dev.txt
	@touch $@

.DEFAULT:
	$(error $@ is neither a target nor a file; make help lists the targets)

# What root makes in another user's checkout belongs to that user.
ifeq ($(shell id -u),0)
ifneq ($(shell stat -c %u .),0)
SHELL := ansible/owned.sh
endif
endif
