"""Joining what a run measured with the modes that an older document has and the run did not touch.

Engines often need environments that exclude each other, and a GPU node may be another one each
time. So a document can grow mode by mode; every mode says when, by which commit and on which card
it was measured.
"""

import re
from collections.abc import Mapping
from typing import Any

from graphgain.errors import ConfigError
from graphgain.measuring.run import other_card

# modes.PUBLISHED, but modes needs aiohttp, and every report asks this module which modes are kept.
PUBLISHED = ("sglang", "no-prefill-graph")
_MEASURED = "Measured by commit "
_SOURCE_DIGITS = 8
Document = Mapping[str, Any]
Key = tuple[str, str]
WITH_MODES = ("ttft", "ttft_breakdown")
_SHARED = ("model", "weights", "requests_per_length", "warmup_requests", "concurrency")


def keep_other_modes(new: Document, old: Document) -> dict[str, Any]:
    """`new` with the modes of `old` that it lacks; both are documents of one experiment.

    Raises ConfigError where they are not of one model, or were not measured in one way.
    """
    for name in _SHARED:
        before, now = (document["parameters"].get(name) for document in (old, new))
        if before != now:
            raise ConfigError(
                f"The document's modes were measured with {name} {before!r}, these with {now!r}: "
                "measure them in the same way, or into another folder (--out)."
            )
    kept = {_key(run) for run in old.get("engines") or []} - {
        _key(run) for run in new.get("engines") or []
    }
    runs = [
        *(_placed(run, new) for run in new.get("engines") or []),
        *(
            _placed(_dated(run, old, new), old)
            for run in old.get("engines") or []
            if _key(run) in kept
        ),
    ]
    notes = [note for note in new["notes"] if not other_card(note)]
    joined = {**new, "engines": runs, "notes": notes}
    if new["experiment"] == "ttft":
        joined["rows"] = [*new["rows"], *(row for row in old["rows"] if _key(row) in kept)]
        checks = [
            *(new.get("client_check") or []),
            *(check for check in old.get("client_check") or [] if _key(check) in kept),
        ]
        return {**joined, **({"client_check": checks} if checks else {})}
    parts = {**_parts(old, kept), **_parts(new, None)}
    own = PUBLISHED if PUBLISHED in parts else _key(new["parameters"])
    joined["parameters"] = {**new["parameters"], "engine": own[0], "mode": own[1]}
    joined["rows"] = parts.pop(own)
    joined["beside"] = [
        {"engine": engine, "mode": mode, "rows": rows} for (engine, mode), rows in parts.items()
    ]
    return joined


def modes_of_other_code(document: Document, source: str) -> dict[str, list[str]]:
    """The modes that were kept from documents of other measuring code than `source`, by the first
    digits of that code's hash."""
    found: dict[str, list[str]] = {}
    for run in document.get("engines") or []:
        for note in run.get("notes") or []:
            told = re.match(rf"{_MEASURED}\w+, source (\w+)\.", note)
            if told and not source.startswith(told[1]):
                found.setdefault(told[1], []).append(":".join(_key(run)))
    return found


def _parts(document: Document, wanted: set[Key] | None) -> dict[Key, Any]:
    """The rows of each mode of a composition, of the wanted ones or all."""
    found = {_key(document["parameters"]): document["rows"]}
    found |= {_key(part): part["rows"] for part in document.get("beside") or []}
    return {key: rows for key, rows in found.items() if wanted is None or key in wanted}


def _placed(run: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """A run with its card, where that is another one than machine.json describes."""
    cards = filter(None, map(other_card, document.get("notes") or []))
    card = run.get("card") or next(cards, None)
    return {**run, "card": card} if card else dict(run)


def _dated(run: Mapping[str, Any], old: Document, new: Document) -> dict[str, Any]:
    """A kept run with notes on the document that it comes from: the commit, unless it has one
    already, and what else that document says and the new one does not."""
    told = list(run.get("notes") or [])
    if not any(note.startswith(_MEASURED) for note in told):
        provenance = old["provenance"]
        commit = str(provenance["git_commit"] or "unknown")[:10]
        source = provenance["source_hash"][:_SOURCE_DIGITS]
        told.append(f"{_MEASURED}{commit}, source {source}.")
    more = (note for note in old.get("notes") or [] if note not in (*told, *new["notes"]))
    return {**run, "notes": [*told, *(note for note in more if not other_card(note))]}


def _key(part: Mapping[str, Any]) -> Key:
    return str(part["engine"]), str(part["mode"])
