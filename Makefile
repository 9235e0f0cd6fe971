# Everything that a new developer runs. Each target does all the set-up that it needs from a bare clone.
# What a target takes is measured on 2 cores; the first `make` sets up .venv besides, for half a minute.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BENCH ?= admissions caches create_latency cold_starts
BIN := $(VENV)/bin
# Processes that tests run in, at most 4, each with a control plane of its own where one is asked for. Many tests wait for
# a program that they have started, so there is one process more than cores.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Of the soak: whole, or small.
SIZE ?= whole
PYTEST := -m pytest -q --numprocesses=$(WORKERS) --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
# The first Python that is there and new enough.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' 2>/dev/null && break; done)

# Without files of bytecode, each process that a test starts compiles all modules, and each run rewrites all asserts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

.PHONY: venv
venv: $(VENV)/.dev ## Set up .venv with everything, and bin/kubevirt-coschedule in it

.PHONY: demo
demo: $(VENV)/$(if $(wildcard $(VENV)/.dev),.dev,.runtime) ## Tell what the webhook does: before, after, and ten scenarios, with its answers over TLS
	@$(BIN)/python -m webhook demo

.PHONY: check
check: SAID := lint, types, import contracts, and the fast ones of the unit and component tests: 3 minutes
check: announced lint ## For a change in hand: as `make test`, without slow tests and without coverage; 3 minutes
	PROPERTY_EXAMPLES=5 $(BIN)/python $(PYTEST) -m 'not soak_only and not slow'

.PHONY: test
test: SAID := lint, unit and component tests with their coverage: 5 minutes
test: announced lint ## After a clone: lint, and all unit and component tests with their coverage; builds nothing; 5 minutes
	@rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run $(PYTEST)
	@$(BIN)/python -m coverage combine -q
	@echo "Branch coverage of webhook/core, 100 % required:"
	@$(BIN)/python -m coverage report --include='webhook/core/*' --fail-under=100
	@echo "Branch coverage of the rest, 90 % required:"
	@$(BIN)/python -m coverage report --omit='webhook/core/*' --fail-under=90

.PHONY: e2e
e2e: SAID := tests on a real control plane, with kubectl and helm, and models of clusters: 13 minutes, and 25 more the first time, to build them
e2e: announced control-plane ## Before a merge: tests on a real control plane, with kubectl and helm, and models of clusters; 13 minutes
	$(BIN)/python $(PYTEST) tests/apiserver tests/manifests tests/modelcheck tests/month tests/simulation

.PHONY: soak
soak: SAID := tests that prove by number, SIZE=$(SIZE): $(if $(filter small,$(SIZE)),25 minutes at most,some hours)
soak: announced control-plane ## Tests that prove by number: storms, rotations, random clusters; some hours, SIZE=small 25 minutes
	@$(BIN)/python tests/controlplane/build.py constant-webhook kubernetes-1.30
	TEST_SIZE=$(SIZE) $(BIN)/python -m pytest -q -rP $(if $(filter small,$(SIZE)),,-o faulthandler_timeout=0) -m 'soak or soak_only or hypothesis' tests
	$(if $(filter small,$(SIZE)),,@$(MAKE) image-test node-test)

.PHONY: node-test
node-test: SAID := the install on two nodes with real kubelets: 6 minutes, and up to 40 more the first time, to build them
node-test: $(VENV)/.dev announced ## Install the program on two real nodes (kubelet, containerd, runc) and use it there (ONLY="-k rollout" for a part); needs root and packages of Debian; 6 minutes
	@$(BIN)/python tests/controlplane/build.py etcd kubernetes-1.37 kubectl helm node
	@PYTHONPATH=tests $(BIN)/python -m node $(ONLY)

.PHONY: image-test
image-test: SAID := the image, built and run: 4 minutes
image-test: $(VENV)/.dev announced ## Build the image with buildah and run it in runc (ONLY="-k demo" for a part); needs root and packages of Debian; 4 minutes
	@$(BIN)/python tests/controlplane/build.py etcd kubernetes-1.37 kubectl
	@PYTHONPATH=tests $(BIN)/python -m image $(ONLY)

.PHONY: simulate
simulate: $(VENV)/.dev ## Play two rough days of 30 simulated VMs from each seed, with faults, and check what must always hold (SEEDS=100, SEED=1, REUNITE=1 for the processes of reunite)
	@PYTHONPATH=tests $(BIN)/python -m simulation --seeds $(or $(SEEDS),10) --seed $(or $(SEED),1) --reunite $(or $(REUNITE),1)

.PHONY: month
month: SAID := a month of VMs on real controllers, some minutes for each contestant, and more the first time, to build them
month: announced $(VENV)/.dev ## Play a month on real controllers, once without the webhook and once in each of its modes (DAYS=15, SEED="1 2 3", VMS=80, NODES=10, ONLY="--only required"): the table of VM-hours, and dist/month.json
	@$(BIN)/python tests/controlplane/build.py etcd kubernetes-1.37 kubectl kubevirt-1.8
	@GOGC=300 PYTHONPATH=tests $(BIN)/python -m month --seed $(or $(SEED),1) --days $(or $(DAYS),15) --vms $(or $(VMS),80) --nodes $(or $(NODES),10) $(ONLY)

.PHONY: pictures
pictures: $(VENV)/.dev ## Take the pictures of the page in docs/images, with Chromium (ONLY="--vms 5" for a part); 4 minutes
	@PYTHONPATH=tests $(BIN)/python -m pictures $(ONLY)

.PHONY: announced
announced:
	@echo 'On 2 cores: $(SAID)'

.PHONY: control-plane
control-plane: $(VENV)/.dev ## Build the programs of a control plane, kubectl and helm for the tests (once; `make e2e` does it too)
	@$(BIN)/python tests/controlplane/build.py

.PHONY: lint
lint: $(VENV)/.dev ## Lint, types, import contracts, spelling, dependencies, workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy .ci/release
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/deptry webhook certs
	$(BIN)/zizmor --offline --quiet --persona=auditor .github

.PHONY: workflows-lint
workflows-lint: $(VENV)/.dev ## Lint the workflows in .github with zizmor and actionlint, which Go builds from its module (needs Go 1.25)
	$(BIN)/zizmor --offline --persona=auditor .github
	go tool -C .ci/actionlint actionlint '$(CURDIR)'/.github/workflows/*.yml

.PHONY: audit
audit: $(VENV)-audit/.audit ## Ask the Python package index for known vulnerabilities of all that is locked (needs the internet)
	@for lock in requirements*.lock; do echo "$$lock"; \
		$(VENV)-audit/bin/pip-audit --strict --require-hashes --disable-pip --progress-spinner=off -r "$$lock"; done

.PHONY: bench
bench: $(VENV)/.dev ## Measure: admissions, the caches of a large cluster, pod CREATEs, cold starts (BENCH=caches for one part)
	$(if $(filter create_latency,$(BENCH)),@$(BIN)/python tests/controlplane/build.py constant-webhook)
	@for part in $(BENCH); do echo; echo "tests/bench/$$part.py"; $(BIN)/python "tests/bench/$$part.py"; done

.PHONY: gain
gain: $(VENV)/.dev ## Measure what a VM gains on its share-manager's node, with NFS-Ganesha; needs root
	@$(BIN)/python tests/bench/gain.py

.PHONY: lock
lock: ## Renew the hash-locked requirements (needs uv)
	uv pip compile -q --universal --generate-hashes --extra speed -o requirements.lock pyproject.toml
	uv pip compile -q --universal --generate-hashes --extra speed --group dev -o requirements-dev.lock pyproject.toml
	uv pip compile -q --universal --generate-hashes --group docs -o requirements-docs.lock
	uv pip compile -q --universal --generate-hashes --group audit -o requirements-audit.lock

.PHONY: docs
docs: $(VENV)-docs/.docs ## Build the documentation site into dist/site/html; a broken link fails
	@rm -rf dist/site && mkdir -p dist/site/source
	@cp .ci/site/zensical.toml dist/site
	@cp -R ./*.md LICENSE docs .ci/site/extra.css "$$($(VENV)-docs/bin/python -c \
		'import mermaidx; print(mermaidx.__path__[0])')/assets/mermaid.js" dist/site/source
	@for page in tests/*/README.md; do mkdir -p "dist/site/source/$${page%/*}" && cp "$$page" "dist/site/source/$$page"; done
	@$(VENV)-docs/bin/zensical build --strict --clean -f dist/site/zensical.toml
	@echo 'See it: python3 -m http.server --directory dist/site/html'

.PHONY: manifests
manifests: $(VENV)/.dev ## Render manifests/ from the chart, after a change of it
	@$(BIN)/python tests/controlplane/build.py helm
	@PYTHONPATH=tests $(BIN)/python .ci/release/install_files.py

.PHONY: release
release: $(VENV)/.dev ## Write the files of a release into dist (IMAGE=REGISTRY/kubevirt-coschedule DIGEST=sha256:...; UNRELEASED=1 to try it)
	@$(BIN)/python tests/controlplane/build.py kubectl helm
	@PYTHONPATH=tests $(BIN)/python .ci/release --image '$(IMAGE)' --digest '$(DIGEST)' --unreleased '$(UNRELEASED)'

# The first builder that works: the client of docker can be there without its daemon.
BUILDER ?= $(shell for b in docker podman buildah; do $$b info >/dev/null 2>&1 && echo $$b && break; done)
# With podman and buildah each file of the image has this time: two builds of one commit give the same bytes. Docker with
# the containerd image store refuses to change the times of files in an image that it loads (buildx, issue 2733).
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
IMAGE_NAME = $(or $(IMAGE),kubevirt-coschedule:$(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' webhook/__init__.py))

.PHONY: image
image: ## Build the image with docker, podman or buildah (BUILDER=buildah chooses; PYTHON_IMAGE=... is another base, IMAGE=... another name)
	@test -n '$(BUILDER)' || { echo 'error: none of docker, podman, buildah works; install one of them' >&2; exit 2; }
	@test -n '$(EPOCH)' || { echo 'error: git tells no time of a commit; set SOURCE_DATE_EPOCH, in seconds' >&2; exit 2; }
	$(if $(filter docker,$(BUILDER)),SOURCE_DATE_EPOCH=$(EPOCH),env -u SOURCE_DATE_EPOCH) $(BUILDER) build \
		$(if $(filter docker,$(BUILDER)),,--layers --timestamp $(EPOCH)) $(if $(NO_CACHE),--no-cache) \
		$(if $(PYTHON_IMAGE),--build-arg 'PYTHON_IMAGE=$(PYTHON_IMAGE)') \
		$(if $(findstring @,$(PYTHON_IMAGE)),--build-arg 'BASE_DIGEST=$(lastword $(subst @, ,$(PYTHON_IMAGE)))') \
		--build-arg "REVISION=$$(git describe --always --abbrev=40 --dirty --exclude='*' || echo unknown)" \
		--tag '$(IMAGE_NAME)' .

.PHONY: pin-base
pin-base: ## Pin the base image in the Dockerfile by the digest that its tag has now (needs docker and the internet)
	@base=$$(sed -n 's/^ARG PYTHON_IMAGE=\([^@]*\).*/\1/p' Dockerfile); \
		digest=$$(docker buildx imagetools inspect "$$base" --format '{{.Manifest.Digest}}'); \
		sed -i "s|^ARG PYTHON_IMAGE=.*|ARG PYTHON_IMAGE=$$base@$$digest|" Dockerfile

.PHONY: clean
clean: ## Remove what was made
	rm -rf $(VENV) $(VENV)-docs $(VENV)-audit dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache

# A venv from hash-locked requirements: with uv where it is there, with pip otherwise.
define install
	@test -n '$(PYTHON)' || { \
		echo 'error: no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python' >&2; exit 2; }
	@echo 'Setting up $(@D) from $< (once)'
	@if command -v uv >/dev/null; then \
		uv venv -q --allow-existing --python '$(PYTHON)' $(@D); \
		uv pip install -q --python $(@D)/bin/python --require-hashes -r $<; \
	else \
		$(PYTHON) -m venv $(@D); \
		$(@D)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $<; \
	fi
endef

$(VENV)/.runtime: requirements.lock
	$(install)
	@touch $@

$(VENV)-docs/.docs: requirements-docs.lock
	$(install)
	@touch $@

$(VENV)-audit/.audit: requirements-audit.lock
	$(install)
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml
	$(install)
	@if command -v uv >/dev/null; then \
		uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
		$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	fi
	@touch $@
