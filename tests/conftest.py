"""Fixtures: a copy of the checkout that tests may change, and one in which the site is built."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkout import Checkout, copy_checkout

pytest_plugins = ["engine_stage"]


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The locks lie in the temporary folder: who measures here meanwhile must not fail tests."""
    folder = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A fresh copy of the checkout, nothing built."""
    return copy_checkout(tmp_path / "graphgain")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the checkout in which `report` was built; tests leave it as it is."""
    checkout = copy_checkout(tmp_path_factory.mktemp("built") / "graphgain")
    checkout.snakemake("report", "--cores", "all")
    return checkout


@pytest.fixture
def rebuilt(built: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the built checkout, Snakemake's records included, that a test may change."""
    target = tmp_path / "graphgain"
    shutil.copytree(built.root, target, symlinks=True)
    return Checkout(target)


@pytest.fixture(scope="session")
def built_site(built: Checkout) -> Path:
    """The folder of the built site."""
    return built.root / "report" / "_site"
