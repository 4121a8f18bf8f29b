"""Reading and writing result documents: validated both ways, written atomically."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphgain.errors import DocumentError
from graphgain.files import write_atomically
from graphgain.results import MODELS, SCHEMA_VERSION, Document, Machine
from graphgain.results.serving import AgentWorkload

M = TypeVar("M", bound=BaseModel)
D = TypeVar("D", bound=Document)


def read_document(path: Path) -> Document:
    """Read and validate one document.

    Raises DocumentError naming the file, the field and the reason.
    """
    raw = _read_json(path)
    experiment = raw.get("experiment")
    if not isinstance(experiment, str) or experiment not in MODELS:
        raise DocumentError(
            f"{path}: experiment {experiment!r} is unknown; known are {', '.join(MODELS)}."
        )
    if experiment != path.stem:
        raise DocumentError(
            f"{path}: the document says experiment {experiment!r}, "
            f"so its file must be named {experiment}.json."
        )
    document = _validate(MODELS[experiment], raw, path)
    if document.machine != path.parent.name:
        raise DocumentError(
            f"{path}: machine is {document.machine!r}, but the folder is {path.parent.name!r}."
        )
    return document


def read_machine(folder: Path) -> Machine:
    """Read and validate `machine.json` of one results folder; raises DocumentError."""
    path = folder / "machine.json"
    machine = _validate(Machine, _read_json(path), path)
    if machine.slug != folder.name:
        raise DocumentError(f"{path}: slug is {machine.slug!r}, but the folder is {folder.name!r}.")
    return machine


def load_documents(results: str | Path, machines: Iterable[str], model: type[D]) -> dict[str, D]:
    """The documents of one kind by machine slug, in the given order.

    A machine without that document is left out: it was not measured there.
    """
    experiment = next(name for name, known in MODELS.items() if known is model)
    found: dict[str, D] = {}
    for machine in machines:
        path = Path(results) / machine / f"{experiment}.json"
        if path.exists():
            document = read_document(path)
            assert isinstance(document, model)
            found[machine] = document
    return found


def list_traces(results: str | Path) -> list[str]:
    """The folders of counted traces: their documents belong to no machine."""
    return sorted(path.parent.name for path in Path(results).glob("trace-*/agent_workload.json"))


def load_traces(results: str | Path) -> dict[str, AgentWorkload]:
    """The documents of the counted traces by folder, the one with the highest hit rate first."""
    found = load_documents(results, list_traces(results), AgentWorkload)
    return dict(sorted(found.items(), key=lambda one: -one[1].cache_hit_percent))


def machine_labels(results: str | Path, machines: Iterable[str]) -> dict[str, str]:
    """What each machine is called in tables and legends, by slug."""
    return {machine: read_machine(Path(results) / machine).label for machine in machines}


def list_machines(results: Path) -> list[Machine]:
    """Every machine that has a folder with a `machine.json`, published ones first."""
    machines = [read_machine(path.parent) for path in sorted(results.glob("*/machine.json"))]
    return sorted(machines, key=lambda machine: (machine.kind != "published", machine.slug))


def write_document(path: Path, document: Mapping[str, Any] | Document) -> None:
    """Validate a document and write it atomically; an invalid one leaves the old file as it is."""
    if isinstance(document, Document):
        raw = document.model_dump(mode="json", exclude_unset=True)
    else:
        raw = dict(document)
    model = MODELS.get(str(raw.get("experiment")))
    if model is None:
        raise DocumentError(f"{path}: experiment {raw.get('experiment')!r} is unknown.")
    write_atomically(path, dump_json(_validate(model, raw, path)))


def dump_json(model: BaseModel) -> str:
    """The text of a document: two spaces, unset optional fields left out, one final newline."""
    raw = model.model_dump(mode="json", exclude_unset=True)
    return json.dumps(raw, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DocumentError(f"{path}: there is no such document.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DocumentError(
            f"{path}: not valid JSON ({error}); the file is broken or cut off. "
            "Restore it with git, or measure it again."
        ) from None
    if not isinstance(raw, dict):
        raise DocumentError(f"{path}: a document is a JSON object, not {type(raw).__name__}.")
    version = raw.get("schema_version")
    if version != SCHEMA_VERSION:
        raise DocumentError(
            f"{path}: schema_version is {version!r}, this graphgain reads {SCHEMA_VERSION}. "
            "Measure again, or use the graphgain that wrote it."
        )
    return raw


def _validate(model: type[M], raw: Mapping[str, Any], path: Path) -> M:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = [f"{_field(e['loc'])}: {e['msg']}" for e in error.errors()]
        shown = "; ".join(problems[:3]) + (f" (and {len(problems) - 3} more)" * (len(problems) > 3))
        raise DocumentError(f"{path}: {shown}") from None


def _field(loc: tuple[int | str, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".") or "document"
