"""Stale documents on the site: a badge below the exhibit, the reason on the machine's page."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphgain.experiments import EXPERIMENTS
from graphgain.measuring.provenance import source_hash
from graphgain.notebooks import Notebook
from graphgain.site.stage import Origin, stage
from graphgain.tables import ABSENT
from notebook_source import ROOT

MACHINES = ("gb300-published", "h200")
NOTEBOOK = Notebook(
    "floor", Path("notebooks/floor.py"), "Floor", ("launch_floor", "handoff"), ("bars",), ()
)


class Site:
    """A site of one figure, from measured documents that are fresh and published ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.report, self.build = folder / "report", folder / "build"
        self.results, self.out = folder / "results", folder / "out"
        for name in ("figures", "tables", "notebooks", "facts"):
            (self.build / name).mkdir(parents=True)
        (self.build / "facts" / "floor.json").write_text("[]")
        (self.report / "exhibits").mkdir(parents=True)
        (self.report / "exhibits" / "floor.yml").write_text(
            "figures: {bars: {caption: Bars., alt: Bars of time.}}\ntables: {}\n"
        )
        for machine in MACHINES:
            (self.results / machine).mkdir(parents=True)
            for name in ("machine", "launch_floor", "handoff"):
                source = ROOT / "results" / machine / f"{name}.json"
                if source.exists():
                    shutil.copy(source, self.results / machine)

        for name in ("launch_floor", "handoff"):
            today = EXPERIMENTS[name]
            self.change(name, source_hash=source_hash(today), parameters=today.with_overrides({}))

    def change(self, name: str, **provenance: Any) -> None:
        """Replace parts of a measured document's provenance."""
        path = self.results / "h200" / f"{name}.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        document["provenance"] |= provenance
        path.write_text(json.dumps(document), encoding="utf-8")

    def stage(self, overrides: dict[str, dict[str, Any]] | None = None) -> tuple[str, str]:
        """Below the figure, and on the page of the measured machine, when staged."""
        stage(
            report=self.report,
            build=self.build,
            results=self.results,
            notebooks=[NOTEBOOK],
            machines=MACHINES,
            origin=Origin("abc1234", None),
            overrides=overrides or {},
            out=self.out,
        )
        figure = (self.out / "_includes" / "figures" / "bars.md").read_text(encoding="utf-8")
        machine = (self.out / "machines" / "h200.qmd").read_text(encoding="utf-8")
        return figure, machine


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def row(page: str, experiment: str) -> str:
    """The line of one document in a machine's table."""
    return next(line for line in page.splitlines() if line.startswith(f"| [{experiment}]"))


def test_another_source_is_stale(site: Site) -> None:
    site.change("launch_floor", source_hash="0" * 64)
    figure, machine = site.stage()
    link = "[launch_floor · h200](results/h200/launch_floor.json)"
    assert f"{link} [stale: source changed]{{.badge .stale}}" in figure
    assert figure.count(".badge") == 1
    assert "[stale: source changed]{.badge .stale} source 00000000 → " in row(
        machine, "launch_floor"
    )
    assert row(machine, "handoff").endswith("| fresh |")


def test_changed_parameters_are_stale_by_the_configuration(site: Site) -> None:
    _, before = site.stage()
    figure, machine = site.stage({"launch_floor": {"launches": 400}})
    assert "parameters changed" in figure and "parameters changed" not in before
    assert "parameter launches 512 → 400" in row(machine, "launch_floor")


def test_several_changes_are_one_badge(site: Site) -> None:
    site.change("launch_floor", source_hash="0" * 64)
    figure, _ = site.stage({"launch_floor": {"launches": 400, "rounds": 100}})
    assert "[stale: parameters, source changed]{.badge .stale}" in figure


def test_a_fresh_document_has_no_badge(site: Site) -> None:
    figure, machine = site.stage()
    assert ".badge" not in figure + machine
    assert row(machine, "launch_floor").endswith("| fresh |")


def test_a_published_document_is_neither(site: Site) -> None:
    site.stage({"launch_floor": {"launches": 400}})
    page = (site.out / "machines" / "gb300-published.qmd").read_text(encoding="utf-8")
    assert row(page, "launch_floor").endswith(f"| {ABSENT} |")


def test_the_declaration_of_listings_is_not_served(site: Site) -> None:
    shutil.copy(ROOT / "report" / "listings.yml", site.report)
    site.stage()
    assert not (site.out / "listings.yml").exists()
    assert "__global__" in (site.out / "_includes/listings/handoff_kernel.md").read_text()
