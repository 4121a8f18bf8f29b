# make report | make test are all a newcomer needs; both create .venv from any Python 3.11+.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORES  ?= all

.PHONY: report test measure publish figures lint requirements clean

report: $(VENV)/.installed
	$(BIN)/snakemake --cores $(CORES) report
	@echo "The article: file://$(CURDIR)/report/_site/index.html"

measure figures publish: $(VENV)/.installed
	$(BIN)/snakemake --cores $(CORES) $@

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

$(VENV)/.installed: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "graphgain needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed requirements-test.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

# The pins follow pyproject.toml; `make requirements UPGRADE=--upgrade` moves them on.
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/uv pip compile --quiet --universal \
	--python-version 3.11 --no-annotate $(UPGRADE)

requirements: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) pyproject.toml -o requirements.txt
	$(COMPILE) --extra test -c requirements.txt pyproject.toml -o requirements-test.txt

clean:
	rm -rf build logs report/_site
