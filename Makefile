# tpucc: `make run` and `make test` need Python 3.11 or newer with venv, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs
SITE := $(VENV)/.site
COLLECTED := $(VENV)/.collected
PLAYGROUND := build/playground/.ready
# Modules are compiled when they are first imported: to compile all that is installed takes ten seconds.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Long tests wait for processes and pages; without them a fourth worker costs more than it gives on two processors.
WORKERS ?= 4
TEST_WORKERS ?= 3
COLLECT := $(BIN)/python -m pytest --collect-only -qq

# The tests start a hundred processes: compiled modules are kept, whatever the caller's environment says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/pip
	$(INSTALL) -e .
	@touch $@

# All at once, where nothing is installed yet: to build tpucc and to look through its requirements twice takes ten seconds.
$(DEV): pyproject.toml | $(BIN)/pip
	$(INSTALL) -e '.[dev]'
	@touch $(READY) $@

$(DOCS): $(DEV)
	$(INSTALL) -e '.[docs]'
	@touch $@

$(SITE): $(DEV)
	$(INSTALL) -e '.[docs,site]'
	@touch $@

run: $(READY) ## compile, execute and check the digits network on held-out data, and draw it
	$(BIN)/tpucc compile programs/04_digits_mlp.tpu
	$(BIN)/tpucc run programs/04_digits_mlp.tpu --check

# Pytest compiles the modules of the tests in its own way: once here, in two processes, and not in each worker of the first run.
$(COLLECTED): $(DEV)
	@$(COLLECT) tests/unit >/dev/null & $(COLLECT) --ignore tests/unit >/dev/null; wait  # the tests themselves say what is wrong
	@touch $@

quick: $(DEV) ## half a minute, for the loop while editing: most of what all tests find
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal -m 'not long' @tests/quick.txt

test: $(COLLECTED) ## three to four minutes: the tests, but for those that take long and that no known fault needs
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal -m 'not long'

check: $(DEV) ## what CI runs: format, lint, types, import contract, all tests, but of those that take long a fourth, and those of floats as if on other processors
	@$(MAKE) --no-print-directory --jobs 2 types format lint imports $(COLLECTED)
	@mkdir -p build
	@$(MAKE) --no-print-directory processors >build/processors.txt 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --long-one-in 4; status=$$?; \
	wait $$beside || { cat build/processors.txt; exit 1; }; exit $$status

processors: $(COLLECTED) ## the tests of floats and of ONNX Runtime, as if on other processors; ALL=1: on all of them, which takes long
	$(BIN)/python tests/processors.py $(if $(ALL),--all)

versions: $(DEV) ## the tests of numpy, onnx and onnxruntime with their lowest and newest versions
	$(BIN)/python tests/versions.py

format: $(DEV) ## check the format (mend: make fix)
	$(BIN)/ruff format --check .

lint: $(DEV) ## ruff, and oxlint for JavaScript
	$(BIN)/ruff check .
	$(BIN)/oxlint --deny-warnings --no-error-on-unmatched-pattern tpucc docs/playground

types: $(DEV) ## mypy --strict
	$(BIN)/mypy

imports: $(DEV) ## the import contract
	$(BIN)/lint-imports --no-cache

fix: $(DEV) ## format and mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV) ## execution against NumPy, compile speed by size; prints ratios; AGAINST=../other: beside another checkout
	$(BIN)/python benchmarks/bench.py $(if $(AGAINST),--against $(AGAINST),--write)

golden: $(DEV) ## rewrite the expected outputs of the golden tests, to be read in the diff
	$(BIN)/python -m pytest tests -n $(WORKERS) --update-golden

faults: $(DEV) ## plant known faults one by one: each must be caught by tests of `make test` that the list names
	$(BIN)/python tests/faults/plant.py

fingerprints: $(DEV) ## compare all that is compiled, run, trained and graded with what it was before a change of structure; WRITE=1: write it
	$(BIN)/python tests/fingerprints.py $(if $(WRITE),--write)
	$(BIN)/python docs/generate.py --check --usual

soak: $(DEV) ## all tests with every case of each kind, and the random ones at length, in parts of less than an hour, then processors ALL=1 and versions; PART=unit, SEED=7, SHARE=100: all random cases instead of a fourth
	$(BIN)/python tests/soak.py $(PART) $(if $(SEED),--seed $(SEED)) $(if $(SHARE),--share $(SHARE))

walks: $(COLLECTED) ## apply each change that docs/adding.md shows to a copy, and run all tests there; WALK=operator: that one
	$(BIN)/python tests/walks.py $(WALK)

pages: $(READY) ## check that the pages of docs/ are what the code says: tables, commands, the figures of all programs, pictures; QUICK=1: the first two
	$(BIN)/python docs/generate.py --check $(if $(QUICK),--quick,--usual)

docs: $(DOCS) ## regenerate the reference pages, outputs, pictures and the notebook of docs/
	$(BIN)/python docs/generate.py

site: $(SITE) ## the book and the playground as a site in build/site, and a crawl of it; PYODIDE=folder: with Pyodide beside the page
	$(BIN)/python docs/site/build.py $(if $(QUICK),--quick)
	$(BIN)/python docs/playground/build_playground.py -o build/site/playground $(if $(PYODIDE),--pyodide $(PYODIDE))
	$(BIN)/python docs/site/crawl.py

book: $(SITE) ## the compiler's code in reading order, as one page in build/book, which a browser also prints
	$(BIN)/python docs/site/book.py

slides: $(READY) ## slides of the book's chapters for twelve weeks, with notes, in build/slides
	$(BIN)/python docs/site/slides.py

$(PLAYGROUND): | $(READY)
	$(BIN)/python docs/playground/build_playground.py -o $(@D)
	@touch $@

play: $(READY) $(PLAYGROUND) ## the playground in your browser, with this computer's Python; builds it the first time, from the npm registry
	$(BIN)/python -m tpucc.playground $(dir $(PLAYGROUND))

editor: $(READY) ## CodeMirror, from the npm registry, for the page of tpucc watch, which else has a plain text area
	$(BIN)/python docs/playground/build_playground.py --editor

train: $(READY) ## train the weights of programs/ again, in TPU v2's arithmetic: the same bytes everywhere
	$(BIN)/python programs/train.py

data: $(READY) ## make the data of programs/ again, from scikit-learn's
	$(INSTALL) -e '.[data]'
	$(BIN)/python programs/data.py

clean: ## remove what the targets above made
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.PHONY: help run test quick check processors versions format lint types imports fix bench golden faults fingerprints soak walks pages docs site book slides play editor train data clean
