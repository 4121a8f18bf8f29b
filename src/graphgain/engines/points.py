"""Points of a sweep: measured one by one, and kept one by one, so that a sweep can be continued."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphgain.engines.client import Answer, Target, send_all
from graphgain.engines.prompts import token_ids
from graphgain.engines.protocol import RequestError, request
from graphgain.errors import MeasureError
from graphgain.files import write_atomically
from graphgain.measuring.summary import quantity


@dataclass(frozen=True)
class Sweep:
    """How every length is measured: in so many passes over all lengths, each with its share of the
    requests, so that a slow spell of the machine does not fall on one length alone."""

    requests: int
    warmup: int
    concurrency: int
    vocabulary: int
    served: str
    passes: int = 1


@dataclass(frozen=True)
class Point:
    """Answered requests of one length, of so many wanted; warm-up is not in it."""

    isl_tokens: int
    ttft_ms: list[float]
    run: int
    wanted: int

    def quantity(self) -> dict[str, Any]:
        """The Quantity of the samples."""
        return by_request(self.ttft_ms)


def by_request(samples: Sequence[float], *, keep_samples: bool = True) -> dict[str, Any]:
    """The Quantity of one sample a request, low and high being the quartiles."""
    summary = quantity([samples], keep_samples=keep_samples)
    result = {
        "median": summary["median"],
        "low": summary["q1"],
        "high": summary["q3"],
        "interval": "quartiles",
        "n": summary["n"],
    }
    return {**result, "samples": summary["samples"]} if keep_samples else result


def measure_length(target: Target, isl_tokens: int, sweep: Sweep, run: int) -> Point:
    """Send the requests of one length; raises RequestError if one fails or is not what was asked.

    A prompt of another length, an output of another length and a prompt that a cache knew make the
    whole point invalid.
    """
    prompts = [
        token_ids(isl_tokens, index, sweep.vocabulary, run)
        for index in range(sweep.warmup + sweep.requests)
    ]
    requests = [request(target.protocol, sweep.served, ids) for ids in prompts]
    answers = send_all(target, requests, concurrency=sweep.concurrency)
    for answer in answers:
        check_answer(answer, isl_tokens)
    kept = answers[sweep.warmup :]
    ttft_ms = [round(answer.ttft_ms, 4) for answer in kept]
    return Point(isl_tokens, ttft_ms, run, sweep.requests)


def check_answer(answer: Answer, isl_tokens: int) -> None:
    """Raises RequestError where a server says that a request was not a cold one of that length."""
    told = answer.usage
    if told.prompt_tokens not in (None, isl_tokens):
        raise RequestError(
            f"A prompt of {isl_tokens} tokens was counted as {told.prompt_tokens} by the server."
        )
    if told.completion_tokens not in (None, 1):
        raise RequestError(
            f"One token was asked for, and the server says that it made {told.completion_tokens}."
        )
    if told.cached_tokens:
        raise RequestError(
            f"{told.cached_tokens} of {isl_tokens} tokens came from the server's prefix cache: "
            "the prompt was not cold. Turn the prefix cache off."
        )


def measure_points(
    target: Target,
    lengths: Sequence[int],
    sweep: Sweep,
    folder: Path,
    name: str,
    check: Callable[[], None],
) -> list[Point]:
    """The points of all lengths: those that `folder` has, and the others measured and kept there.

    `check` is called after a failure: it may know better what was wrong (a server that died).
    """
    run = int(time.time())
    kept = sum(read_point(folder, isl_tokens, sweep) is not None for isl_tokens in lengths)
    if kept:
        print(f"{name}: {kept} of {len(lengths)} lengths are kept in {folder}", file=sys.stderr)
    for number in range(sweep.passes):
        for place, isl_tokens in enumerate(lengths, 1):
            try:
                point = _go_on(target, isl_tokens, sweep, folder, number, run)
            except MeasureError as error:
                check()
                raise RequestError(f"{name}, {isl_tokens} tokens: {error}") from None
            which = f"pass {number + 1} of {sweep.passes}, " if sweep.passes > 1 else ""
            print(
                f"{name}: {which}{place} of {len(lengths)}: {isl_tokens} tokens "
                f"{point.quantity()['median']:.2f} ms",
                file=sys.stderr,
                flush=True,
            )
    return [found for isl in lengths if (found := read_point(folder, isl, sweep)) is not None]


def _go_on(
    target: Target, isl_tokens: int, sweep: Sweep, folder: Path, number: int, run: int
) -> Point:
    """The point of a length after pass `number`, kept: what is there, and what the pass adds."""
    quota = -(-sweep.requests * (number + 1) // sweep.passes)
    known = _kept_point(folder, isl_tokens, sweep)
    have = known.ttft_ms if known else []
    if known and len(have) >= quota:
        return known
    # Prompts differ from pass to pass: a cache could know them.
    share = replace(sweep, requests=quota - len(have))
    more = measure_length(target, isl_tokens, share, run + number)
    point = Point(isl_tokens, [*have, *more.ttft_ms], more.run, sweep.requests)
    write_point(folder, point)
    return point


def read_point(folder: Path, isl_tokens: int, sweep: Sweep) -> Point | None:
    """A complete point that was kept; None where there is none, or one of other requests."""
    point = _kept_point(folder, isl_tokens, sweep)
    return point if point and len(point.ttft_ms) == sweep.requests else None


def _kept_point(folder: Path, isl_tokens: int, sweep: Sweep) -> Point | None:
    """What is kept of a point, complete or not, as long as so many requests are wanted as now."""
    path = _path(folder, isl_tokens)
    if not path.exists():
        return None
    try:
        point = Point(**read_kept(path))
        return point if point.wanted == sweep.requests and len(point.ttft_ms) else None
    except TypeError as error:
        raise MeasureError(f"{path}: not a point of a sweep ({error}); remove it.") from None


def write_point(folder: Path, point: Point) -> None:
    """Keep a point."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(_path(folder, point.isl_tokens), json.dumps(asdict(point)) + "\n")


def read_kept(path: Path) -> Any:
    """The JSON of a file that an earlier run kept; raises MeasureError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MeasureError(f"{path}: cannot be read ({error}); remove it.") from None


def _path(folder: Path, isl_tokens: int) -> Path:
    return folder / f"{isl_tokens}.json"
