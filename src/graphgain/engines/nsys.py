"""Reading what `nsys export --type sqlite` makes of a profile: the same launches and operations."""

import sqlite3
from contextlib import closing
from pathlib import Path

from graphgain.engines.kineto import ProfileError, Trace, trace_of

_OPERATIONS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": 0,
    "CUPTI_ACTIVITY_KIND_MEMCPY": 1,
    "CUPTI_ACTIVITY_KIND_MEMSET": 2,
}
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_GRAPH = "GraphLaunch"


def read_nsys(path: Path) -> Trace:
    """Read an export; raises ProfileError where it is none, or has no CUDA calls or kernels.

    Graphs have to be traced node by node (`nsys profile --cuda-graph-trace=node`), or their kernels
    are one operation.
    """
    launch: list[list[float]] = [[], [], [], []]
    operation: list[list[float]] = [[], [], [], []]
    try:
        # Opened for reading: sqlite makes an empty database of a path that does not exist.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
            tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master")}
            missing = {_CALLS, "StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"} - tables
            if missing:
                raise ProfileError(
                    f"{path}: has no table {', '.join(sorted(missing))}; profile with "
                    "--trace=cuda and export with `nsys export --type sqlite`."
                )
            calls = file.execute(
                f"SELECT calls.start, correlationId, globalTid, value FROM {_CALLS} AS calls "
                "JOIN StringIds ON StringIds.id = nameId"
            )
            for start_ns, correlation, thread, name in calls:
                called = (start_ns / 1000, correlation, thread, _GRAPH in name)
                for column, value in zip(launch, called, strict=True):
                    column.append(value)
            for table, kind in _OPERATIONS.items():
                if table not in tables:
                    continue
                rows = file.execute(f"SELECT start, end, correlationId FROM {table}")
                for start_ns, end_ns, correlation in rows:
                    done = (start_ns / 1000, end_ns / 1000, correlation, kind)
                    for column, value in zip(operation, done, strict=True):
                        column.append(value)
    except sqlite3.Error as error:
        raise ProfileError(f"{path}: not an export of nsys ({error}).") from None
    if not launch[0] or not operation[0]:
        raise ProfileError(f"{path}: has no CUDA calls or no kernels.")
    return trace_of(launch, operation, None)
