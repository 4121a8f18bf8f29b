"""Staging: one tree with the prose, the generated parts and the downloads, for either renderer."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphgain.errors import SiteError
from graphgain.facts import Fact, load_facts, nest, words
from graphgain.freshness import Overrides, check_document
from graphgain.notebooks import Notebook
from graphgain.results import MODELS
from graphgain.results.store import list_traces, read_document, read_machine
from graphgain.site import pages
from graphgain.site.listings import listing_text, read_listings

LICENCE = "MIT"


@dataclass(frozen=True)
class Origin:
    """Where a site comes from: the commit, and the repository's address where one is configured."""

    commit: str
    repository: str | None

    def link(self) -> str:
        """The commit as Markdown, linked where that is possible."""
        plain = self.commit.partition("+")[0]
        if self.repository is None or " " in plain:
            return f"commit {self.commit}"
        return f"[commit {self.commit}]({self.repository}/commit/{plain})"


def stage(
    *,
    report: Path,
    build: Path,
    results: Path,
    notebooks: Sequence[Notebook],
    machines: Sequence[str],
    origin: Origin,
    overrides: Overrides,
    out: Path,
) -> None:
    """Lay out the site's sources below `out`, replacing what stood there.

    `report` holds the prose and the look, `build` what the notebooks wrote; `overrides` are the
    configured parameters, by which stale documents are told. Raises SiteError for an exhibit
    without caption or alternative text, for a caption without an exhibit, and for a listing that
    its source does not have.
    """
    shutil.rmtree(out, ignore_errors=True)
    kept_back = shutil.ignore_patterns("_site", ".*", "exhibits", "listings.yml")
    shutil.copytree(report, out, ignore=kept_back)
    for folder in ("figures", "tables", "notebooks"):
        shutil.copytree(build / folder, out / folder)
    kept = _copy_results(results, [*machines, *list_traces(results)], out / "results")
    facts = load_facts(build / "facts" / f"{notebook.name}.json" for notebook in notebooks)
    _write_variables(facts, origin, out / "_variables.yml")
    states = {
        (machine, experiment): check_document(results / machine / f"{experiment}.json", overrides)
        for experiment, owners in kept.items()
        for machine in owners
    }
    for notebook in notebooks:
        links = pages.provenance_links(notebook, kept, origin.link(), states)
        _write_exhibits(notebook, report / "exhibits", links, out / "_includes")
    _write_listings(report / "listings.yml", out / "_includes" / "listings")
    _write_pages(results, machines, kept, states, out)


def _copy_results(results: Path, machines: Sequence[str], out: Path) -> dict[str, list[str]]:
    """Copy the documents to download; returns the machines or traces that have each experiment."""
    kept: dict[str, list[str]] = {experiment: [] for experiment in MODELS}
    for machine in machines:
        (out / machine).mkdir(parents=True)
        for path in sorted((results / machine).glob("*.json")):
            shutil.copy(path, out / machine)
            if path.name != "machine.json":
                kept[read_document(path).experiment].append(machine)
    return kept


def _write_variables(facts: Mapping[str, Fact], origin: Origin, path: Path) -> None:
    site = {fact.name: fact for fact in (words("site.licence", LICENCE),)}
    tree = nest({**facts, **site, "site.commit": words("site.commit", origin.commit)})
    path.write_text(yaml.safe_dump(tree, allow_unicode=True, sort_keys=True), encoding="utf-8")


def _write_exhibits(notebook: Notebook, captions: Path, links: str, out: Path) -> None:
    path = captions / f"{notebook.name}.yml"
    said = _read_captions(path, notebook)
    for folder in ("figures", "tables"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name in notebook.figures:
        text = pages.figure(name, said["figures"][name], links)
        (out / "figures" / f"{name}.md").write_text(text, encoding="utf-8")
    for name in notebook.tables:
        text = pages.table(name, said["tables"][name], links)
        (out / "tables" / f"{name}.md").write_text(text, encoding="utf-8")


def _read_captions(path: Path, notebook: Notebook) -> dict[str, dict[str, dict[str, str]]]:
    said: dict[str, Any] = {"figures": {}, "tables": {}}
    if path.exists():
        loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        said.update({kind: rows or {} for kind, rows in loaded.items()})
    wanted = {
        "figures": (notebook.figures, {"caption", "alt"}),
        "tables": (notebook.tables, {"caption"}),
    }
    if set(said) != set(wanted):
        raise SiteError(f"{path}: only `figures` and `tables` may stand here.")
    for kind, (names, keys) in wanted.items():
        if set(said[kind]) != set(names):
            raise SiteError(
                f"{path}: {kind} has {', '.join(sorted(said[kind])) or 'nothing'}, but "
                f"{notebook.source} makes {', '.join(sorted(names)) or 'none'}."
            )
        for name, row in said[kind].items():
            if set(row) != keys or not all(row.values()):
                raise SiteError(f"{path}: {kind}.{name} needs {' and '.join(sorted(keys))}.")
    return said


def _write_listings(declared: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for listing in read_listings(declared):
        text = listing_text(listing)
        (out / f"{listing.name}.md").write_text(text, encoding="utf-8")


def _write_pages(
    results: Path,
    machines: Sequence[str],
    kept: Mapping[str, list[str]],
    states: pages.States,
    out: Path,
) -> None:
    described = [read_machine(results / slug) for slug in machines]
    (out / "machines").mkdir()
    for machine in described:
        documents = [
            read_document(results / machine.slug / f"{experiment}.json")
            for experiment, owners in kept.items()
            if machine.slug in owners
        ]
        text = pages.machine(machine, documents, states)
        (out / "machines" / f"{machine.slug}.qmd").write_text(text, encoding="utf-8")
    (out / "machines" / "index.qmd").write_text(
        pages.machine_index(described, kept), encoding="utf-8"
    )
    (out / "_includes" / "results_index.md").write_text(
        pages.results_index(described, kept), encoding="utf-8"
    )
