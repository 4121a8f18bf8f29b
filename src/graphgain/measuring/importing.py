"""Taking in results that were measured on another machine."""

import json
import shutil
import tempfile
from pathlib import Path

from graphgain.engines.keeping import WITH_MODES, keep_other_modes
from graphgain.errors import DocumentError, MeasureError
from graphgain.files import write_atomically
from graphgain.measuring.machine import SLUG
from graphgain.measuring.run import check_machine
from graphgain.results.store import read_document, read_machine, write_document


def import_results(
    source: Path, results: Path, *, allow_other_gpu: bool = False, keep: bool = False
) -> tuple[list[Path], list[Path]]:
    """Copy a machine's folder to `results`; returns the paths written and those there already.

    All or nothing: every document is validated and none may differ from one that is there. With
    `allow_other_gpu`, documents from another card of the same model join those that are there,
    each with a note that says so. With `keep`, a document about engines that is there stays, with
    those of its modes that the new one lacks. Raises DocumentError for an invalid one, MeasureError
    for links, strange files and conflicts, ConfigError for another machine.
    """
    files = _regular_files(source)
    slug = _slug(source / "machine.json")
    target = results / slug
    if any(path.is_symlink() for path in (results, target)):
        raise MeasureError(
            f"{target}: is a symbolic link, and results are not written through one."
        )
    with tempfile.TemporaryDirectory(prefix="graphgain-import-") as scratch:
        staged = Path(scratch) / slug  # documents are checked against the name of their folder
        staged.mkdir()
        for file in files:
            shutil.copyfile(file, staged / file.name, follow_symlinks=False)
        _validate(staged, source)
        if allow_other_gpu and (target / "machine.json").exists():
            _join_another_card(staged, target / "machine.json")
        joined = _join_modes(staged, target) if keep else set()
        contents = {file.name: (staged / file.name).read_bytes() for file in files}

    same: list[Path] = []
    conflicts: list[Path] = []
    for name, content in contents.items():
        path = target / name
        unlike = path.exists() and path.read_bytes() != content
        if path.is_symlink() or (unlike and name not in joined):
            conflicts.append(path)
        elif path.exists() and not unlike:
            same.append(path)
    if conflicts:
        raise MeasureError(
            f"{source}: not imported, because these differ from it: "
            f"{', '.join(map(str, conflicts))}. Remove them first if the new ones should stand."
        )
    written = [target / name for name in contents if target / name not in same]
    try:
        # The machine last: a folder counts as a machine once it has one.
        for path in sorted(written, key=lambda path: path.name == "machine.json"):
            write_atomically(path, contents[path.name])
    except OSError as error:
        raise MeasureError(f"{target}: could not be written ({error.strerror}).") from None
    return written, same


def _join_another_card(staged: Path, kept: Path) -> None:
    """Note in each document that it is of another card than `kept` describes, and keep `kept`."""
    brought = json.loads((staged / "machine.json").read_text(encoding="utf-8"))
    notes = check_machine(kept, brought, allow_other_gpu=True)
    shutil.copyfile(kept, staged / "machine.json")
    for path in staged.glob("*.json"):
        if notes and path.name != "machine.json":
            raw = json.loads(path.read_text(encoding="utf-8"))
            raw["notes"] = [*notes, *raw.get("notes", [])]
            write_document(path, raw)


def _join_modes(staged: Path, target: Path) -> set[str]:
    """Add to the documents about engines the modes that those in `target` have besides; the names
    of these files. Raises ConfigError where they were not measured in one way, DocumentError where
    the one that is there is invalid."""
    names = {f"{name}.json" for name in WITH_MODES}
    both = {name for name in names if (staged / name).exists() and (target / name).exists()}
    for name in both:
        read_document(target / name)  # whether it is one that can be joined
        new, old = (
            json.loads((folder / name).read_text(encoding="utf-8")) for folder in (staged, target)
        )
        write_document(staged / name, keep_other_modes(new, old))
    return both


def _regular_files(source: Path) -> list[Path]:
    if source.is_symlink() or not source.is_dir():
        raise MeasureError(f"{source}: is not a folder of results.")
    files = sorted(source.iterdir())
    for file in files:
        if file.is_symlink() or not file.is_file():
            raise MeasureError(
                f"{file}: is a link or no plain file; a results folder has only files."
            )
        if file.suffix != ".json":
            raise MeasureError(f"{file}: is not a result document; remove it from the folder.")
    if source / "machine.json" not in files:
        raise MeasureError(f"{source}: has no machine.json, so it is not a machine's results.")
    return files


def _slug(path: Path) -> str:
    """The machine's name, safe as the name of a folder."""
    try:
        slug = json.loads(path.read_text(encoding="utf-8"))["slug"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"{path}: not a machine document: {error!r}") from None
    if not isinstance(slug, str) or not SLUG.fullmatch(slug):
        raise DocumentError(f"{path}: slug {slug!r} cannot name a folder of results.")
    return slug


def _validate(staged: Path, source: Path) -> None:
    try:
        read_machine(staged)
        for path in sorted(staged.glob("*.json")):
            if path.name != "machine.json":
                read_document(path)
    except DocumentError as error:
        raise DocumentError(str(error).replace(str(staged), str(source))) from None
