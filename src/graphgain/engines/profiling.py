"""Requests under an engine's own torch profiler."""

import gzip
import json
import shutil
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphgain.engines.client import Target, send_all
from graphgain.engines.composition import Composition, breakdown_row, compose
from graphgain.engines.config import Profiler
from graphgain.engines.http import NotAnsweredError, ask
from graphgain.engines.kineto import ProfileError, read_trace
from graphgain.engines.points import Sweep, check_answer, read_kept
from graphgain.engines.prompts import token_ids
from graphgain.engines.protocol import request
from graphgain.files import write_atomically

PAUSE_S = 0.25
TRACE_DEADLINE_S = 120.0
_POLL_S = 0.5
_PLAUSIBLE_MS = 10_000.0


def profile_length(
    target: Target,
    isl_tokens: int,
    sweep: Sweep,
    profiler: Profiler,
    folder: Path,
    requests: int,
    kept: Path,
) -> None:
    """Send so many requests of one length after a warm one, and as many others to the profiler with
    the same pauses; keep the trace and all times in the folder `kept`, where `composed` finds them.

    `folder` is where the server writes its traces; they are removed from it. Raises ProfileError
    where no complete trace appears.
    """
    run = int(time.time())
    asked = [
        request(target.protocol, sweep.served, token_ids(isl_tokens, index, sweep.vocabulary, run))
        for index in range(2 * requests + 1)
    ]
    send_all(target, asked[:1])
    # Pauses let a GPU cool: without them these requests are no measure for the traced ones.
    untraced = send_all(target, asked[1 : requests + 1], pause_s=PAUSE_S)
    before = set(folder.rglob("*.json*"))
    body = profiler.start_body and profiler.start_body.replace("{profile}", str(folder))
    _post(target.url + profiler.start, body)
    try:
        traced = send_all(target, asked[requests + 1 :], pause_s=PAUSE_S)
    finally:
        _post(target.url + profiler.stop, None)
    for answer in (*untraced, *traced):
        check_answer(answer, isl_tokens)
    fullest, others = await_trace(folder, before)
    for gzipped in (False, True):
        _trace(kept, isl_tokens, gzipped=gzipped).unlink(missing_ok=True)
    shutil.move(fullest, _trace(kept, isl_tokens, gzipped=fullest.name.endswith(".gz")))
    for path in others:
        path.unlink()
    times = {
        "untraced_ms": [each.ttft_ms for each in untraced],
        "traced": [[each.sent_ns, each.first_token_ns, each.ttft_ms] for each in traced],
    }
    write_atomically(_times(kept, isl_tokens), json.dumps(times) + "\n")


def is_profiled(kept: Path, isl_tokens: int, requests: int) -> bool:
    """Whether the trace and the times of so many requests of a length are there."""
    path = _times(kept, isl_tokens)
    if not path.exists():
        return False
    times = read_kept(path)
    # A list: what a version without the untraced requests kept.
    return isinstance(times, dict) and len(times["traced"]) == requests


def forget_profile(kept: Path, isl_tokens: int) -> None:
    """Let a length count as not profiled; its trace stays until there is another."""
    _times(kept, isl_tokens).unlink(missing_ok=True)


def composed(kept: Path, isl_tokens: int, swept: dict[str, Any] | None) -> dict[str, Any]:
    """The row of the breakdown of a length that was profiled; `swept` is its point's Quantity.

    Raises ProfileError where the trace does not hold the requests.
    """
    times = read_kept(_times(kept, isl_tokens))
    traced = times["traced"]
    spans = [(int(sent), int(token)) for sent, token, _ in traced]
    path = _trace(kept, isl_tokens, gzipped=False)
    path = path if path.exists() else _trace(kept, isl_tokens, gzipped=True)
    trace = read_trace(path)
    try:
        found = compose(trace, len(traced), spans_us(spans, trace.base_ns))
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None
    return breakdown_row(
        isl_tokens,
        found,
        [float(ttft_ms) for _, _, ttft_ms in traced],
        times["untraced_ms"],
        swept,
        around(found, spans, trace.base_ns),
    )


def _times(kept: Path, isl_tokens: int) -> Path:
    return kept / f"times-{isl_tokens}.json"


def _trace(kept: Path, isl_tokens: int, *, gzipped: bool) -> Path:
    return kept / f"trace-{isl_tokens}.json{'.gz' if gzipped else ''}"


def await_trace(folder: Path, before: set[Path]) -> tuple[Path, list[Path]]:
    """The new trace with the GPU's work in a folder, and all other new ones, once all are complete.

    An engine's front end may write a trace of its own, which has no launches.
    """
    deadline = time.monotonic() + TRACE_DEADLINE_S
    problem = "no file appeared"
    while time.monotonic() < deadline:
        paths = sorted(set(folder.rglob("*.json*")) - before)
        complete = [path for path in paths if _is_complete(path)]
        if paths and len(complete) == len(paths):
            launches = {path: len(read_trace(path).launch_us) for path in complete}
            fullest = max(complete, key=launches.__getitem__)
            if launches[fullest]:
                return fullest, [path for path in complete if path != fullest]
            problem = "no file has launches"
        elif paths:
            problem = "a file is not complete"
        time.sleep(_POLL_S)
    raise ProfileError(f"{folder}: {problem} within {TRACE_DEADLINE_S:g} s of the profile's end.")


def spans_us(
    times_ns: Sequence[tuple[int, int]], base_ns: int | None
) -> list[tuple[float, float]] | None:
    """When each request was sent and its first token came, in ns since the epoch, in a trace's
    time; None for a trace without a base."""
    if base_ns is None:
        return None
    return [((sent - base_ns) / 1000, (token - base_ns) / 1000) for sent, token in times_ns]


def around(
    found: Sequence[Composition], times_ns: Sequence[tuple[int, int]], base_ns: int | None
) -> list[tuple[float, float]] | None:
    """Of each request, in ms, the time from sending to the first launch, and from the last
    operation's end to the first token; None where the trace's clock is not the client's."""
    if base_ns is None:
        return None
    times = [
        (
            (base_ns - sent + 1000 * one.first_launch_us) / 1e6,
            (token - base_ns - 1000 * one.last_end_us) / 1e6,
        )
        for one, (sent, token) in zip(found, times_ns, strict=True)
    ]
    plausible = all(
        0 <= before < _PLAUSIBLE_MS and 0 <= after < _PLAUSIBLE_MS for before, after in times
    )
    return times if plausible else None


def _is_complete(path: Path) -> bool:
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path, "rb") as file:
                while file.read(1 << 22):
                    pass
            return True
        with path.open("rb") as file:
            file.seek(-min(64, path.stat().st_size), 2)
            return file.read().rstrip().endswith(b"}")
    except (OSError, EOFError, zlib.error):
        return False


def _post(url: str, body: str | None) -> None:
    try:
        ask(url, timeout_s=300, method="POST", body=body, key=None)
    except NotAnsweredError as error:
        raise ProfileError(f"{url} was not answered: {error}.") from None
