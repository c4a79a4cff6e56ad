# `make demo` and `make test` set everything up by themselves: Python 3.11+, git and make are enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SERVERS := .cache/tests/servers/.ready
SMALL := tests/data/thinkingbox_small

.PHONY: demo test check lint types imports format lock setup clean

demo: $(READY)  ## three real agents on the neobank suite, a scripted stand-in plays the model
	$(BIN)/tbadapters demo

CORE_TESTS := tests/core tests/run tests/sandboxes

test: $(READY) $(SERVERS)  ## all tests, each once; the coverage of the core by its own tests is a gate
	$(BIN)/python -m pytest -n 2 --cov --cov-fail-under=95 --cov-report=term:skip-covered $(CORE_TESTS)
	$(BIN)/python -m pytest -n 2 $(addprefix --ignore=,$(CORE_TESTS))

check: lint types imports  ## what must hold besides the tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:  ## resolve the newest versions anew and pin them with their hashes
	$(BIN)/uv pip compile pyproject.toml --quiet --upgrade --all-extras --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements.lock
	cd tbadapters/suites/thinkingbox && $(CURDIR)/$(BIN)/uv pip compile requirements.in --quiet --upgrade --universal \
	  --python-version 3.11 --no-emit-index-url --no-annotate --no-header -o requirements.txt

setup: $(READY)

# Tests of MCP servers in an environment of their own (fastmcp 3.x, mcp 1.x); they are skipped where it can't be made.
$(SERVERS): $(READY) tbadapters/suites/thinkingbox/requirements.txt
	-XDG_CACHE_HOME=$(CURDIR)/.cache/tests $(BIN)/tbadapters thinkingbox setup --data $(SMALL) --env $(@D) && touch $@

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing what requirements.lock names into .venv: a minute or two, once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)

clean:
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov dist
