"""The README keeps its promises: its picture is the built figure, its targets and paths exist."""

import re

import pytest

from checkout import ROOT, Checkout

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.workflow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_the_figure_that_the_repository_builds(built: Checkout, theme: str) -> None:
    kept = ROOT / "docs" / "images" / f"ttft.{theme}.svg"
    drawn = built.root / "build" / "figures" / f"ttft.{theme}.svg"
    assert kept.read_bytes() == drawn.read_bytes(), f"copy {drawn.name} to docs/images"


@pytest.mark.workflow
def test_every_target_named_in_the_readme_exists(built: Checkout) -> None:
    table = README.partition("| target |")[2].partition("\n\n")[0]
    targets = re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert len(targets) >= 6
    listed = built.snakemake("--list-rules").stdout.split()
    assert set(targets) <= set(listed)


def test_every_path_named_in_the_readme_exists() -> None:
    named = re.findall(r"\]\((?!http)([^)#]+)\)", README) + re.findall(
        r'(?:src|srcset)="([^"]+)"', README
    )
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
