# Two commands do everything: `make compare` and `make test`. Both need Python 3.11+, git and make, and set up the rest.
PYTHON ?= python3
VENV := .venv
RLAXES := $(VENV)/bin/rlaxes
IN := $(VENV)/bin/python -m
READY := $(VENV)/.ready
ARGS ?=

ENVIRONMENTS := reference,reference_vllm,trl,verl,openrlhf

.PHONY: compare test lint environments unit conformance bench locks setup clean

compare: $(READY)  ## the main job: one GRPO task through reference and trl, measured and compared
	$(RLAXES) compare adapter=reference,trl $(ARGS)

test: lint unit  ## set up, then lint, types, and every test but those of `make conformance`

lint: $(READY)
	$(IN) ruff check .
	$(IN) ruff format --check .
	$(IN) mypy

environments: $(READY)  ## make the environments of the adapters, and of the tools, that the tests run in
	$(RLAXES) env sync --tools adapter=$(ENVIRONMENTS)

unit: environments
	$(IN) pytest -q -n 2 --ignore=tests/conformance --ignore=tests/third_party $(ARGS)

conformance: $(READY)  ## what every adapter has to hold, run for real; ARGS="--adapter trl" for one
	$(IN) pytest -q tests/conformance $(if $(findstring --adapter,$(ARGS)),,tests/third_party) $(ARGS)

bench: $(READY)  ## the ratios of benchmarks/, measured in turn
	$(IN) benchmarks $(ARGS)

locks: $(READY)  ## compile the locks anew from the extras of pyproject.toml
	$(IN) harness.execute.locks $(ARGS)

setup: $(READY)

$(READY): pyproject.toml locks/harness.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rlaxes needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; set PYTHON=...")'
	@echo "setting up rlaxes in $(VENV): virtual environment (1/3)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "setting up rlaxes: uv, which installs the rest (2/3)"
	@grep -A200 '^uv==' locks/harness.txt | awk 'NR>1 && !/^    /{exit} {print}' > $(VENV)/uv.txt
	@$(VENV)/bin/python -m pip install --quiet --require-hashes -r $(VENV)/uv.txt
	@echo "setting up rlaxes: $$(grep -c '==' locks/harness.txt) packages from locks/harness.txt (3/3)"
	@$(VENV)/bin/python harness/execute/pip_settings.py $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --require-hashes -r locks/harness.txt
	@$(VENV)/bin/python harness/execute/pip_settings.py $(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis
