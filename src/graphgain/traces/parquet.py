"""Conversations of the weka format in Parquet, as the Hub converts them: one row each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Skipped
from graphgain.traces.opening import missing
from graphgain.traces.weka import convert_conversation

_NEEDED = ("id", "block_size", "requests")
_COLUMNS = (*_NEEDED, "hash_id_scope")


def count_groups(path: Path, name: str) -> int:
    """How many row groups a file has; raises TraceError for one that is no trace, or broken."""
    file = _open(path, name)
    absent = [column for column in _NEEDED if column not in file.schema_arrow.names]
    if absent:
        raise TraceError(
            f"{name}: a Parquet file without the column {', '.join(absent)} is no trace."
        )
    return int(file.num_row_groups)


def read_group(
    path: Path, name: str, group: int, skip_bad: bool
) -> Iterator[Conversation | Skipped]:
    """The conversations of one row group, a row at a time."""
    file = _open(path, name)
    line = sum(file.metadata.row_group(before).num_rows for before in range(group))
    columns = [column for column in _COLUMNS if column in file.schema_arrow.names]
    for batch in file.iter_batches(batch_size=1, row_groups=[group], columns=columns):
        for row in batch.to_pylist():
            line += 1
            row["requests"] = list(map(_entry, row["requests"] or []))
            try:
                yield convert_conversation(_present(row), name, line)
            except TraceError as error:
                if not skip_bad:
                    raise
                yield Skipped(str(error))


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    """A request as JSON would have it: a column that does not apply to its type is null."""
    entry = _present(row)
    if entry.get("type") == "subagent":
        entry["requests"] = list(map(_entry, entry.get("requests", [])))
    else:
        entry["hash_ids"] = Raw(msgspec.json.encode(entry.get("hash_ids", [])))
    return entry


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def _open(path: Path, name: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise missing("pyarrow", f"{name}: a Parquet file") from None
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise TraceError(f"{name}: a broken Parquet file ({error}); fetch it again.") from None
