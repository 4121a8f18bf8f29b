"""pyproject.toml, the pinned requirements, environment.yml and CITATION.cff say the same; what git
keeps is all that a clone needs."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import graphgain
import graphgain.figures
import graphgain.publish
import graphgain.results
import graphgain.site

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEFAULT = [Requirement(text) for text in PROJECT["dependencies"]]
TEST = [Requirement(text) for text in PROJECT["optional-dependencies"]["test"]]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PINNED = {"requirements.txt": DEFAULT, "requirements-test.txt": DEFAULT + TEST}

# Packages that conda knows by another name, and what only the conda environment has.
CONDA_NAMES = {
    "snakemake": "snakemake-minimal",
    "matplotlib": "matplotlib-base",
    "pypandoc-binary": "pypandoc",
}
CONDA_ONLY = {"python", "git", "make", "quarto", "pandoc"}


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def lines(name: str) -> list[str]:
    """The lines of a requirements file, without comments and empty ones."""
    return [line for line in read(name).splitlines() if line and not line.startswith("#")]


def pins(name: str, python: str) -> dict[str, Version]:
    """The versions that a requirements file installs on Linux with a Python of this version."""
    machine: dict[str, Any] = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": "linux",
        "platform_system": "Linux",
    }
    found: dict[str, Version] = {}
    for line in lines(name):
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(machine):
            assert canonicalize_name(pin.name) not in found, f"{pin.name} is pinned twice"
            found[canonicalize_name(pin.name)] = Version(str(pin.specifier).removeprefix("=="))
    return found


@pytest.mark.parametrize("name", PINNED)
def test_every_line_is_an_exact_pin(name: str) -> None:
    assert lines(name)
    for line in lines(name):
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [^@/]+)?", line), line


@pytest.mark.parametrize("name", PINNED)
@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_in_its_range(name: str, python: str) -> None:
    pinned = pins(name, python)
    for dependency in PINNED[name]:
        assert pinned[canonicalize_name(dependency.name)] in dependency.specifier, dependency


@pytest.mark.parametrize("python", PYTHONS)
def test_the_tests_run_with_the_versions_of_the_default_install(python: str) -> None:
    assert pins("requirements.txt", python).items() <= pins("requirements-test.txt", python).items()


def needed(requirement: Requirement, seen: set[str]) -> Iterator[str]:
    """Names of an installed package and of all that it requires on this Python."""
    name = canonicalize_name(requirement.name)
    for extra in ["", *requirement.extras]:
        if f"{name}[{extra}]" in seen:
            continue
        seen.add(f"{name}[{extra}]")
        yield name
        for text in requires(name) or []:
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                yield from needed(inner, seen)


@pytest.mark.parametrize("name", PINNED)
def test_what_dependencies_need_is_pinned_too(name: str) -> None:
    """Checked against the packages installed here: after `make test`, those of the files."""
    seen: set[str] = set()
    try:
        names = {name for dependency in PINNED[name] for name in needed(dependency, seen)}
    except PackageNotFoundError as error:
        pytest.fail(f"{error.name} is not installed; `make test` installs it")
    python = ".".join(default_environment()["python_version"].split(".")[:2])
    assert len(names) > len(PINNED[name])
    assert names <= pins(name, python).keys()


# By the names they are imported by: a package of an extra is on no newcomer's machine.
EXTRAS = {"aiohttp", "huggingface_hub", "pyarrow", "pynvml", "torch", "tvm_ffi", "zstandard"}
BUILDING = [
    "graphgain.__main__",
    "graphgain.freshness",
    "graphgain.notebooks",
    "graphgain.workflow",
    *(
        module.name
        for package in (graphgain.figures, graphgain.publish, graphgain.results, graphgain.site)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ),
]


def test_the_article_is_built_without_the_packages_of_an_extra() -> None:
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(EXTRAS)}))\n"
        f"for name in {BUILDING}:\n"
        "    importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]


@pytest.mark.parametrize("name", [*PINNED, "environment.yml"])
def test_no_address_of_a_package_index(name: str) -> None:
    assert not any(dependency.url for dependency in DEFAULT + TEST)
    assert "://" not in read(name)
    assert not re.search(r"^\s*-?-(i|f|e|index|extra|find|trusted)", read(name), re.MULTILINE)
    assert not re.search(r"\b[\w-]+\.(org|com|io|net)\b", read(name))


def test_the_conda_environment_has_the_same_ranges() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    conda = dict(text.partition(" ")[::2] for text in environment["dependencies"])
    expected = {
        CONDA_NAMES.get(name := canonicalize_name(dependency.name), name): dependency.specifier
        for dependency in DEFAULT
    }
    assert conda.keys() == expected.keys() | CONDA_ONLY
    for name, specifier in expected.items():
        assert Requirement(f"{name}{conda[name]}").specifier == specifier, name
    assert conda["python"] == PROJECT["requires-python"]
    assert environment["channels"][0] == "conda-forge"


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load(read("CITATION.cff"))
    assert str(citation["version"]) == graphgain.__version__
    assert citation["license"] == PROJECT["license"]
    (article,) = citation["references"]
    assert article["title"] in read("README.md")
    assert article["date-published"] == "2026-09-23"


def test_git_keeps_no_links() -> None:
    # One that was made by mistake leads to some other machine's disk.
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--stage"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(listed) > 100
    assert [line for line in listed if line.startswith("120000")] == []
