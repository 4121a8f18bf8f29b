"""Reading a torch profiler's trace (Kineto, Chrome's trace format): launches and GPU operations.

Traces are hundreds of megabytes of JSON. They are read as a stream: the decoder takes one event
after the other out of a buffer of a few megabytes, and of each only numbers are kept.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from graphgain.errors import MeasureError

_CHUNK = 1 << 22
_EVENTS = '"traceEvents"'
_BASE = '"baseTimeNanoseconds"'
_GPU = {"kernel": 0, "gpu_memcpy": 1, "gpu_memset": 2}
_CALLS = {"cuda_runtime", "cuda_driver"}
_GRAPH = "GraphLaunch"

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class ProfileError(MeasureError):
    """A trace is missing, broken, or does not hold what was profiled."""


@dataclass(frozen=True)
class Trace:
    """Launches (calls that put work on the GPU) and operations of the GPU, each sorted by start.

    Times are in µs; `base_ns` is what they count from, in ns since the epoch, or None. `graph` of a
    launch: it launches a graph. `kind` of an operation: 0 kernel, 1 copy, 2 fill.
    """

    launch_us: Floats
    launch_correlation: Integers
    launch_thread: Integers
    launch_graph: npt.NDArray[np.bool_]
    start_us: Floats
    end_us: Floats
    correlation: Integers
    kind: Integers
    base_ns: int | None


@dataclass
class _Columns:
    launch: list[Any] = field(
        default_factory=lambda: [array("d"), array("q"), array("q"), array("b")]
    )
    operation: list[Any] = field(
        default_factory=lambda: [array("d"), array("d"), array("q"), array("b")]
    )


def read_trace(path: Path) -> Trace:
    """Read a trace, gzip or not; raises ProfileError."""
    columns = _Columns()
    base: list[int] = []
    try:
        with _open(path) as file:
            for event in events(file, base):
                _keep(event, columns)
    except KeyError as error:
        raise ProfileError(f"{path}: not a readable trace (an event has no {error}).") from None
    except (OSError, EOFError, zlib.error, ValueError, TypeError, OverflowError) as error:
        raise ProfileError(f"{path}: not a readable trace ({error}).") from None
    return trace_of(columns.launch, columns.operation, base[0] if base else None)


def trace_of(launch: Sequence[Any], operation: Sequence[Any], base_ns: int | None) -> Trace:
    """A Trace of columns (launches: start, correlation, thread, graph; operations: start, end,
    correlation, kind), without launches that have no operation: those only asked or waited."""
    start, end, correlation, kind = (np.asarray(column) for column in operation)
    order = np.argsort(start, kind="stable")
    host, called, thread, graph = (np.asarray(column) for column in launch)
    used = np.isin(called, correlation)
    rank = np.argsort(host[used], kind="stable")
    return Trace(
        launch_us=host[used][rank].astype(np.float64),
        launch_correlation=called[used][rank].astype(np.int64),
        launch_thread=thread[used][rank].astype(np.int64),
        launch_graph=graph[used][rank].astype(np.bool_),
        start_us=start[order].astype(np.float64),
        end_us=end[order].astype(np.float64),
        correlation=correlation[order].astype(np.int64),
        kind=kind[order].astype(np.int64),
        base_ns=base_ns,
    )


def events(file: IO[str], base: list[int]) -> Iterator[dict[str, Any]]:
    """The events of a trace, one after the other; `base` gets its time base, where it has one.

    Raises ValueError where the text is not a trace or ends early.
    """
    scan = json.JSONDecoder().raw_decode
    buffer = _head(file)
    _note_base(buffer[: buffer.index(_EVENTS)], base)
    position = buffer.index("[", buffer.index(_EVENTS)) + 1
    while True:
        position = _skip(buffer, position)
        if position < len(buffer) and buffer[position] == "]":
            break
        try:
            event, position = scan(buffer, position)
            # A number at the end of the buffer might go on in the next chunk; an object cannot.
        except json.JSONDecodeError:
            more = file.read(_CHUNK)
            if not more:
                raise ValueError("it ends in the middle of an event") from None
            buffer, position = buffer[position:] + more, 0
            continue
        if isinstance(event, dict):
            yield event
    rest = buffer[position:]
    while more := file.read(_CHUNK):
        rest = (rest + more)[-_CHUNK:]
    _note_base(rest, base)


def _head(file: IO[str]) -> str:
    """The text up to the opening bracket of the events, and what was read beyond it."""
    buffer = ""
    while True:
        found = buffer.find(_EVENTS)
        if found >= 0 and "[" in buffer[found:]:
            return buffer
        more = file.read(_CHUNK)
        if not more:
            raise ValueError("it has no traceEvents")
        buffer += more


def _skip(buffer: str, position: int) -> int:
    while position < len(buffer) and buffer[position] in " \t\r\n,":
        position += 1
    return position


def _note_base(text: str, base: list[int]) -> None:
    found = text.find(_BASE)
    if found < 0 or base:
        return
    digits = text[found + len(_BASE) :].lstrip(" :\n\t").split(",")[0].split("}")[0].strip()
    if digits.isdigit():
        base.append(int(digits))


def _keep(event: dict[str, Any], columns: _Columns) -> None:
    category = event.get("cat")
    if category in _GPU:
        start = float(event["ts"])
        values: list[Any] = [start, start + float(event.get("dur", 0))]
        values += [_correlation(event), _GPU[category]]
        target = columns.operation
    elif category in _CALLS:
        values = [float(event["ts"]), _correlation(event), _thread(event), _GRAPH in event["name"]]
        target = columns.launch
    else:
        return
    for column, value in zip(target, values, strict=True):
        column.append(value)


def _correlation(event: dict[str, Any]) -> int:
    return int((event.get("args") or {}).get("correlation", -1))


def _thread(event: dict[str, Any]) -> int:
    try:
        return int(event["tid"])
    except (KeyError, ValueError, TypeError):
        return 0


def _open(path: Path) -> IO[str]:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")
