"""Generated Markdown: exhibits with their source links, machine pages, the index of results."""

from collections.abc import Mapping, Sequence

from graphgain.figures.themes import THEMES
from graphgain.freshness import Freshness
from graphgain.notebooks import Notebook
from graphgain.results.document import Document
from graphgain.results.machine import Machine

NOT_MEASURED = "not measured"

States = Mapping[tuple[str, str], Freshness]
"""The state of each document, by machine and experiment."""


def provenance_links(
    notebook: Notebook, kept: Mapping[str, list[str]], commit: str, states: States
) -> str:
    """The links that stand below every exhibit of a notebook, after the one to its data.

    A document that today's code or parameters would not measure so has a badge behind its link.
    """
    documents = [
        f"[{experiment} · {machine}](results/{machine}/{experiment}.json)"
        + _badge(states[machine, experiment])
        for experiment in notebook.documents
        for machine in kept[experiment]
    ]
    sources = ", ".join(documents) or "no result document yet"
    return f"{sources} — [notebook](notebooks/{notebook.name}.ipynb) — {commit}"


def _badge(state: Freshness) -> str:
    if state.state != "stale":
        return ""
    changed = f": {', '.join(state.changed)} changed" if state.changed else ""
    return f" [stale{changed}]{{.badge .stale}}"


def figure(name: str, said: Mapping[str, str], links: str) -> str:
    """A figure in both themes with its caption, and the links below it."""
    alt = " ".join(said["alt"].split()).replace('"', "”")
    images = "\n".join(
        f'![](figures/{name}.{theme}.svg){{.only-{theme} fig-alt="{alt}"}}' for theme in THEMES
    )
    return _exhibit(f"fig-{name}", images, said["caption"], f"figures/{name}.csv", links)


def table(name: str, said: Mapping[str, str], links: str) -> str:
    """A table with its caption, and the links below it."""
    include = f"{{{{< include /tables/{name}.md >}}}}"
    return _exhibit(f"tbl-{name}", include, said["caption"], f"tables/{name}.csv", links)


def _exhibit(anchor: str, content: str, caption: str, data: str, links: str) -> str:
    return (
        f"::: {{#{anchor}}}\n{content}\n\n{' '.join(caption.split())}\n:::\n\n"
        f"::: {{.provenance}}\n[data (CSV)]({data}) — {links}\n:::\n"
    )


def machine(described: Machine, documents: Sequence[Document], states: States) -> str:
    """The page of one machine: what it is, and what was measured there, when and by what."""
    lines = [_front_matter(described.label, _kind_sentence(described)), _origin(described), ""]
    lines += ["## What it is {#hardware}", "", *_table(("Property", "Value"), _hardware(described))]
    if described.unavailable:
        rows = [(f"`{field}`", reason) for field, reason in described.unavailable.items()]
        lines += ["", "## What could not be read {#unavailable}", ""]
        lines += _table(("Field", "Reason"), rows)
    lines += ["", "## What there is to see {#documents}", ""]
    rows_ = [
        (*_document_row(document), _state(states[document.machine, document.experiment]))
        for document in documents
    ]
    lines += _table(("Document", "Kind", "From", "Code", "State"), rows_)
    notes = [(document.experiment, note) for document in documents for note in document.notes]
    if notes:
        lines += ["", "## Notes kept with the documents {#notes}", ""]
        lines += [f"- **{experiment}**: {note}" for experiment, note in notes]
    return "\n".join(lines) + "\n"


def machine_index(machines: Sequence[Machine], kept: Mapping[str, list[str]]) -> str:
    """The list of machines."""
    rows = [
        (
            f"[{described.label}]({described.slug}.qmd)",
            described.kind,
            described.gpu.name if described.gpu else "no GPU",
            str(sum(described.slug in owners for owners in kept.values())),
        )
        for described in machines
    ]
    summary = "Each machine whose results this edition shows, published or measured."
    lines = [_front_matter("Machines", summary), summary, ""]
    return "\n".join(lines + _table(("Machine", "Kind", "GPU", "Documents"), rows)) + "\n"


def results_index(machines: Sequence[Machine], kept: Mapping[str, list[str]]) -> str:
    """A table of every document by machine, each a link to the file."""
    header = ("Document", *(described.label for described in machines))
    rows = [
        (
            f"`{experiment}`",
            *(
                f"[JSON](results/{described.slug}/{experiment}.json)"
                if described.slug in owners
                else NOT_MEASURED
                for described in machines
            ),
        )
        for experiment, owners in kept.items()
    ]
    own = ("`machine`", *(f"[JSON](results/{m.slug}/machine.json)" for m in machines))
    lines = _table(header, [own, *rows])
    slugs = {described.slug for described in machines}
    traces = [owner for owner in kept.get("agent_workload", []) if owner not in slugs]
    if traces:
        counted = [(f"`{slug}`", f"[JSON](results/{slug}/agent_workload.json)") for slug in traces]
        lines += ["", "Traces do not depend on a machine:", ""]
        lines += _table(("Trace", "`agent_workload`"), counted)
    return "\n".join(lines) + "\n"


def _kind_sentence(described: Machine) -> str:
    if described.kind == "published":
        return "Numbers as published; this code has not measured on this machine."
    return "Measured by this project's code."


def _origin(described: Machine) -> str:
    if described.source is None:
        return _kind_sentence(described)
    source = described.source
    return (
        f"{_kind_sentence(described)} They are taken from {source.author}, "
        f"[*{source.title}*]({source.url}), {source.published:%d %B %Y}."
    )


def _hardware(described: Machine) -> list[tuple[str, str]]:
    gpu = described.gpu
    values: list[tuple[str, object]] = [
        ("GPU", gpu and gpu.name),
        ("Compute capability", gpu and gpu.compute_capability),
        ("Multiprocessors", gpu and gpu.sm_count),
        ("GPU memory", gpu and _unit(gpu.memory_mib, "MiB")),
        ("L2 cache", gpu and _unit(gpu.l2_bytes and round(gpu.l2_bytes / 2**20), "MiB")),
        ("Power limit", gpu and _unit(gpu.power_limit_w, "W")),
        ("SM clock, now and highest", gpu and _clocks(gpu.sm_mhz, gpu.sm_max_mhz)),
        ("Memory clock, now and highest", gpu and _clocks(gpu.memory_mhz, gpu.memory_max_mhz)),
        ("ECC", gpu and _yes(gpu.ecc)),
        ("MIG", gpu and _yes(gpu.mig)),
        ("Driver", described.driver),
        ("CUDA runtime", described.cuda_runtime),
        ("CUDA toolkit", described.cuda_toolkit),
        ("CPU", described.cpu),
        ("CPU cores", described.cpu_count),
        ("Memory", _unit(described.memory_gib, "GiB")),
        ("Kernel", described.kernel),
        ("Virtual machine", _yes(described.hypervisor)),
        ("Python", described.python),
        ("PyTorch", described.torch),
    ]
    return [(name, str(value)) for name, value in values if value is not None]


def _unit(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:,} {unit}"


def _clocks(now: int | None, highest: int | None) -> str | None:
    if now is None and highest is None:
        return None
    return f"{now or '?'} / {highest or '?'} MHz"


def _yes(value: bool | None) -> str | None:
    return None if value is None else ("yes" if value else "no")


def _document_row(document: Document) -> tuple[str, str, str, str]:
    link = f"[{document.experiment}](../results/{document.machine}/{document.experiment}.json)"
    if document.source is not None:
        return link, document.kind, f"section “{document.source.section}”", "not ours"
    made = document.provenance
    assert made is not None  # a measured document has a provenance
    commit = (made.git_commit or "no commit recorded")[:10] + (
        " with changes" * bool(made.git_dirty)
    )
    return link, document.kind, f"{made.started_at:%Y-%m-%d %H:%M} UTC", commit


def _state(state: Freshness) -> str:
    """Fresh or stale and why; a published document is neither."""
    if state.state == "published":
        return "—"
    return _badge(state).strip() + f" {'; '.join(state.reasons)}" if state.reasons else state.state


def _front_matter(title: str, description: str) -> str:
    return f'---\ntitle: "{title}"\ndescription: "{description}"\n---\n'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{'|'.join(' :--- ' for _ in header)}|",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows),
    ]
