"""Where traces come from: files, folders, globs, https addresses and data sets of the Hub."""

import hashlib
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from graphgain.errors import TraceError
from graphgain.traces.opening import missing

DATA_NAME = re.compile(r"\.(json|jsonl|ndjson|parquet)(\.(gz|zst|xz))?$", re.IGNORECASE)
"""Files of a folder or a data set that are taken for traces; what they hold is then checked."""

_HUB = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+?)(?:@([^/]+))?(?:/(.+))?/?$")
_TIMEOUT_S = 60


@dataclass(frozen=True)
class SourceFile:
    """A file on this machine, and the name that the user knows it by."""

    path: Path
    name: str


@dataclass(frozen=True)
class Found:
    """The files of a source, and files beside them that are no data by their names."""

    files: list[SourceFile]
    ignored: list[str]


def cache_folder() -> Path:
    """Where downloads and counted traces are kept: $XDG_CACHE_HOME/graphgain, else ~/.cache/…"""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "graphgain"


def find(source: str) -> Found:
    """The files of one source, sorted by name.

    `source` is a file, a folder (searched through), a glob, an https address, or
    hf://datasets/OWNER/NAME[@REVISION][/FILE-OR-GLOB]. Raises TraceError where there is nothing.
    """
    if source.startswith("hf://"):
        return Found(_from_hub(source), [])
    if source.startswith("https://"):
        return Found([_download(source)], [])
    if "://" in source:
        raise TraceError(f"{source}: only https:// and hf://datasets/ addresses are fetched.")
    path = Path(source)
    if path.is_dir():
        return _from_folder(path)
    if path.is_file():
        return Found([SourceFile(path, source)], [])
    base, pattern = path.anchor or ".", source[len(path.anchor) :]
    matches = sorted(
        str(match) for match in Path(base).glob(pattern.rstrip("/")) if match.is_file()
    )
    if not matches:
        raise TraceError(f"{source}: there is no such file, folder or glob match.")
    return Found([SourceFile(Path(name), name) for name in matches], [])


def _from_folder(folder: Path) -> Found:
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    data = [SourceFile(file, str(file)) for file in files if DATA_NAME.search(file.name)]
    if not data:
        raise TraceError(f"{folder}: no JSON, JSON lines or Parquet file is in this folder.")
    return Found(data, [str(file) for file in files if not DATA_NAME.search(file.name)])


def _from_hub(source: str) -> list[SourceFile]:
    named = _HUB.fullmatch(source)
    if named is None:
        raise TraceError(
            f"{source}: write hf://datasets/OWNER/NAME, then @REVISION and /FILE where wanted."
        )
    try:
        import huggingface_hub
    except ImportError:
        raise missing("huggingface_hub", f"{source}: a data set of the Hub") from None
    repository, revision, wanted = named.groups()
    where = {"repo_id": repository, "repo_type": "dataset", "revision": revision}
    try:
        names = sorted(huggingface_hub.HfApi().list_repo_files(**where))
        names = [name for name in names if DATA_NAME.search(name)]
        if wanted:
            names = [name for name in names if name == wanted or fnmatch(name, wanted)]
        files = [
            SourceFile(
                Path(huggingface_hub.hf_hub_download(filename=name, **where)),
                f"hf://datasets/{repository}/{name}",
            )
            for name in names
        ]
    except Exception as error:  # whatever the library and its HTTP client raise
        raise TraceError(f"{source}: could not be fetched from the Hub: {error}") from error
    if not files:
        raise TraceError(f"{source}: no JSON, JSON lines or Parquet file of this name is there.")
    return files


def _download(address: str) -> SourceFile:
    """A file from an https address, kept under the address's hash and fetched once."""
    path = cache_folder() / "downloads" / hashlib.sha256(address.encode()).hexdigest()
    if path.exists():
        return SourceFile(path, address)
    from tqdm import tqdm

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with (
            os.fdopen(descriptor, "wb") as target,
            urllib.request.urlopen(address, timeout=_TIMEOUT_S) as response,
        ):
            length = int(response.headers.get("Content-Length") or 0)
            with tqdm.wrapattr(target, "write", total=length or None, desc="fetching") as out:
                shutil.copyfileobj(response, out, 1 << 20)
            if length and target.tell() != length:
                raise OSError(f"{target.tell()} of {length} bytes arrived")
        Path(temporary).replace(path)
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise TraceError(f"{address}: could not be fetched: {error}.") from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return SourceFile(path, address)
