"""Points of a sweep: measured one by one, and kept one by one, so that a sweep can be continued."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
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
    """How every length is measured."""

    requests: int
    warmup: int
    concurrency: int
    vocabulary: int
    served: str


@dataclass(frozen=True)
class Point:
    """The requests of one length, all of them answered; warm-up is not in it."""

    isl_tokens: int
    ttft_ms: list[float]
    run: int

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
    return Point(isl_tokens, [round(answer.ttft_ms, 4) for answer in kept], run)


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
    points = []
    for number, isl_tokens in enumerate(lengths, 1):
        point = read_point(folder, isl_tokens, sweep)
        if point is None:
            try:
                point = measure_length(target, isl_tokens, sweep, run)
            except MeasureError as error:
                check()
                raise RequestError(f"{name}, {isl_tokens} tokens: {error}") from None
            write_point(folder, point)
        points.append(point)
        median = point.quantity()["median"]
        print(
            f"{name}: {number} of {len(lengths)}: {isl_tokens} tokens {median:.2f} ms",
            file=sys.stderr,
            flush=True,
        )
    return points


def read_point(folder: Path, isl_tokens: int, sweep: Sweep) -> Point | None:
    """A point that was kept, None where there is none or it has another number of requests."""
    try:
        raw: Mapping[str, Any] = json.loads(_path(folder, isl_tokens).read_text(encoding="utf-8"))
        point = Point(**raw)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise MeasureError(
            f"{_path(folder, isl_tokens)}: not a point of a sweep ({error}); remove it."
        ) from None
    return point if len(point.ttft_ms) == sweep.requests else None


def write_point(folder: Path, point: Point) -> None:
    """Keep a point."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(_path(folder, point.isl_tokens), json.dumps(asdict(point)) + "\n")


def _path(folder: Path, isl_tokens: int) -> Path:
    return folder / f"{isl_tokens}.json"
