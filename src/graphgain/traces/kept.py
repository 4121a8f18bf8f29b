"""Matched traces, kept under a hash of the files, the plan and the code."""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from graphgain.files import write_atomically
from graphgain.traces.corpus import Corpus, Plan
from graphgain.traces.matching import Ints
from graphgain.traces.provenance import counting_hash
from graphgain.traces.sources import cache_folder

_TEXTS = ("ids", "agents", "formats", "block_tokens", "clock", "skipped")


def place(hashes: Iterable[str], names: Iterable[str], plan: Plan) -> Path:
    """Where the result for files with these contents and names is kept, whether there is one."""
    key = json.dumps([counting_hash(), asdict(plan), list(hashes), list(names)])
    return cache_folder() / "traces" / f"{hashlib.sha256(key.encode()).hexdigest()}.npz"


def load(path: Path) -> Corpus | None:
    """A kept result; None where there is none, or none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            texts = json.loads(str(arrays["texts"]))
            lead: dict[Any, Ints] = {
                name[5:]: arrays[name] for name in arrays.files if name.startswith("lead_")
            }
            columns: dict[str, Any] = {
                field.name: arrays[field.name]
                for field in fields(Corpus)
                if field.name not in (*_TEXTS, "lead")
            }
            return Corpus(**texts, **columns, lead=lead)
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None


def save(corpus: Corpus, path: Path) -> None:
    """Keep a result."""
    texts = json.dumps({name: getattr(corpus, name) for name in _TEXTS})
    columns: dict[str, Any] = {
        field.name: getattr(corpus, field.name)
        for field in fields(Corpus)
        if field.name not in (*_TEXTS, "lead")
    }
    columns |= {f"lead_{mode}": lead for mode, lead in corpus.lead.items()}
    stream = io.BytesIO()
    np.savez_compressed(stream, texts=np.array(texts), **columns)
    write_atomically(path, stream.getvalue())
