"""Whether a document is what today's code and parameters would measure, told by content alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphgain.engines.keeping import modes_of_other_code
from graphgain.experiments import EXPERIMENTS, Experiment, missing_tools
from graphgain.measuring import SCHEMA_VERSION
from graphgain.measuring.gpu import NOT_FOUND
from graphgain.measuring.provenance import source_hash

State = Literal["fresh", "stale", "missing", "skipped", "published", "broken"]
Overrides = Mapping[str, Mapping[str, Any]]

_HASH_DIGITS = 8


@dataclass(frozen=True)
class Freshness:
    """The state of one document, and why: what changed from what to what, or what is missing."""

    experiment: str
    state: State
    reasons: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Which of schema, parameters and source changed."""
        kinds = {
            "schema": "schema",
            "parameter": "parameters",
            "source": "source",
            "modes": "source of some modes",
        }
        first_words = {reason.partition(" ")[0] for reason in self.reasons}
        return tuple(shown for kind, shown in kinds.items() if kind in first_words)


def check_document(path: Path, overrides: Overrides | None = None) -> Freshness:
    """The state of a document that exists; `overrides` are the configured parameters.

    Its content is not validated beyond what this needs: reading it for a figure does that.
    """
    name = path.stem
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        schema, kind = document["schema_version"], document["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Freshness(name, "broken", (f"cannot be read: {error!r}",))
    if kind == "published":
        return Freshness(name, "published")
    experiment = EXPERIMENTS.get(name)
    if name == "agent_workload":
        return _check_trace(document)
    if experiment is None:
        return Freshness(name, "stale", ("no experiment of this name exists any more",))
    try:
        provenance = document["provenance"]
        hashed, parameters = provenance["source_hash"], provenance["parameters"]
    except (KeyError, TypeError) as error:
        return Freshness(name, "broken", (f"has no provenance: {error!r}",))
    wanted = experiment.with_overrides((overrides or {}).get(name, {}))
    reasons = []
    if schema != SCHEMA_VERSION:
        reasons.append(f"schema {schema} → {SCHEMA_VERSION}")
    reasons += _changed_parameters(
        {name: value for name, value in parameters.items() if name not in experiment.scope},
        {name: value for name, value in wanted.items() if name not in experiment.scope},
    )
    now = source_hash(experiment)
    if hashed != now:
        reasons.append(f"source {hashed[:_HASH_DIGITS]} → {now[:_HASH_DIGITS]}")
    reasons += [
        f"modes {', '.join(modes)}: source {older} → {now[:_HASH_DIGITS]}"
        for older, modes in modes_of_other_code(document, now).items()
    ]
    return Freshness(name, "stale" if reasons else "fresh", tuple(reasons))


def _check_trace(document: Mapping[str, Any]) -> Freshness:
    """The state of a trace's document: counting it again takes its files, not a machine."""
    from graphgain.traces.provenance import counting_hash

    try:
        hashed = document["provenance"]["source_hash"]
    except (KeyError, TypeError) as error:
        return Freshness("agent_workload", "broken", (f"has no provenance: {error!r}",))
    now = counting_hash()
    if hashed == now:
        return Freshness("agent_workload", "fresh")
    reason = f"source {hashed[:_HASH_DIGITS]} → {now[:_HASH_DIGITS]}"
    return Freshness("agent_workload", "stale", (reason,))


def check_machine(
    folder: Path,
    overrides: Overrides | None = None,
    *,
    local: bool,
    gpu: bool,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
) -> list[Freshness]:
    """The state of every document of a machine, in the order of the experiments, then the others.

    What a published machine lacks is not listed. On the `local` machine, which has a `gpu` or not,
    what lacks a tool is skipped and not missing.
    """
    existing = {path.stem: path for path in sorted(folder.glob("*.json"))}
    machine = existing.pop("machine", None)
    published = machine is not None and _kind(machine) == "published"
    found = []
    for name, experiment in experiments.items():
        if name in existing:
            found.append(check_document(existing.pop(name), overrides))
        elif not published:
            reason = _why_skipped(experiment, gpu) if local else None
            found.append(
                Freshness(name, "skipped", (reason,)) if reason else Freshness(name, "missing")
            )
    return found + [check_document(path, overrides) for path in existing.values()]


def status_table(machines: Mapping[str, list[Freshness]]) -> str:
    """Machines and their documents as lines for a terminal."""
    lines = []
    for slug, documents in machines.items():
        lines.append(slug)
        width = max((len(document.experiment) for document in documents), default=0)
        lines += [
            f"  {document.experiment:<{width}}  {document.state:<9}"
            f"  {'; '.join(document.reasons)}".rstrip()
            for document in documents
        ]
    return "\n".join(lines)


def _changed_parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    names = [*new, *(name for name in old if name not in new)]
    return [
        f"parameter {name} {_shown(old, name)} → {_shown(new, name)}"
        for name in names
        if name not in old or name not in new or old[name] != new[name]
    ]


def _shown(parameters: Mapping[str, Any], name: str) -> str:
    return json.dumps(parameters[name], ensure_ascii=False) if name in parameters else "(none)"


def _why_skipped(experiment: Experiment, gpu: bool) -> str | None:
    if experiment.needs_gpu and not gpu:
        return f"{experiment.name} needs a GPU, and {NOT_FOUND}."
    return missing_tools(experiment)


def _kind(machine: Path) -> str | None:
    try:
        kind = json.loads(machine.read_text(encoding="utf-8"))["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(kind)
