"""A small staged site that uses every construct of the article, for the tests of graphgain.site."""

import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURE = Path(__file__).resolve().parent / "site_fixture"


def stage_fixture(stage: Path) -> Path:
    """Copy the fixture's sources and the site's real template, filter and styles to `stage`."""
    shutil.copytree(FIXTURE, stage)
    report = REPOSITORY / "report"
    for name in ("_quarto.yml", "template.html", "filter.lua"):
        shutil.copyfile(report / name, stage / name)
    shutil.copytree(report / "styles", stage / "styles")
    return stage
