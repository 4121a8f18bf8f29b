"""Requests under an engine's own torch profiler."""

import gzip
import sys
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Any

from graphgain.engines.client import Answer, Target, send_all
from graphgain.engines.composition import Composition, breakdown_row, compose
from graphgain.engines.config import Profiler
from graphgain.engines.kineto import ProfileError, Trace, read_trace
from graphgain.engines.points import Sweep, check_answer
from graphgain.engines.prompts import token_ids
from graphgain.engines.protocol import request

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
    untraced: dict[str, Any] | None,
) -> dict[str, Any]:
    """Profile so many requests of one length after a warm one; the row of the breakdown.

    `folder` is where the server writes its traces; they are removed when they are read. Raises
    ProfileError where no complete trace appears or it does not hold the requests.
    """
    run = int(time.time())
    asked = [
        request(target.protocol, sweep.served, token_ids(isl_tokens, index, sweep.vocabulary, run))
        for index in range(requests + 1)
    ]
    send_all(target, asked[:1])
    before = set(folder.rglob("*.json*"))
    body = profiler.start_body and profiler.start_body.replace("{profile}", str(folder))
    _post(target.url + profiler.start, body)
    try:
        answers = send_all(target, asked[1:], pause_s=PAUSE_S)
    finally:
        _post(target.url + profiler.stop, None)
    for answer in answers:
        check_answer(answer, isl_tokens)
    paths, trace = await_trace(folder, before)
    found = compose(trace, requests, spans_us(answers, trace.base_ns))
    for path in paths:
        path.unlink()
    return breakdown_row(
        isl_tokens,
        found,
        [answer.ttft_ms for answer in answers],
        untraced,
        around(found, answers, trace.base_ns),
    )


def await_trace(folder: Path, before: set[Path]) -> tuple[list[Path], Trace]:
    """The new traces in a folder once they are complete, and the one with the GPU's work.

    An engine's front end may write a trace of its own, which has no launches.
    """
    deadline = time.monotonic() + TRACE_DEADLINE_S
    problem = "no file appeared"
    while time.monotonic() < deadline:
        paths = sorted(set(folder.rglob("*.json*")) - before)
        complete = [path for path in paths if _is_complete(path)]
        if paths and len(complete) == len(paths):
            traces = [read_trace(path) for path in complete]
            fullest = max(traces, key=lambda trace: len(trace.launch_us))
            if len(fullest.launch_us):
                return complete, fullest
            problem = "no file has launches"
        elif paths:
            problem = "a file is not complete"
        time.sleep(_POLL_S)
    raise ProfileError(f"{folder}: {problem} within {TRACE_DEADLINE_S:g} s of the profile's end.")


def spans_us(answers: list[Answer], base_ns: int | None) -> list[tuple[float, float]] | None:
    """When each request was sent and answered, in a trace's time; None for one without a base."""
    if base_ns is None:
        return None
    return [
        ((answer.sent_ns - base_ns) / 1000, (answer.first_token_ns - base_ns) / 1000)
        for answer in answers
    ]


def around(
    found: list[Composition], answers: list[Answer], base_ns: int | None
) -> list[tuple[float, float]] | None:
    """Of each request, in ms, the time from sending to the first launch, and from the last
    operation's end to the first token; None where the trace's clock is not the client's."""
    if base_ns is None:
        return None
    times = [
        (
            (base_ns - answer.sent_ns + 1000 * one.first_launch_us) / 1e6,
            (answer.first_token_ns - base_ns - 1000 * one.last_end_us) / 1e6,
        )
        for one, answer in zip(found, answers, strict=True)
    ]
    plausible = all(
        0 <= before < _PLAUSIBLE_MS and after < _PLAUSIBLE_MS for before, after in times
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
    asked = urllib.request.Request(
        url,
        data=(body or "").encode(),
        headers={"Content-Type": "application/json"} if body else {},
        method="POST",
    )
    try:
        with urllib.request.urlopen(asked, timeout=300) as answer:
            answer.read()
    except (urllib.error.URLError, OSError) as error:
        print(f"{url}: {error}", file=sys.stderr)
        raise ProfileError(f"{url} was not answered ({error}).") from None
