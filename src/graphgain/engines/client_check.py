"""Our client beside `vllm bench serve` on one running server, by turns."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphgain.engines import bench_process
from graphgain.engines.client import Target
from graphgain.engines.foreign import read_foreign
from graphgain.engines.points import Sweep, measure_length
from graphgain.engines.server import tail
from graphgain.errors import MeasureError
from graphgain.measuring.process import child_environment, python_module
from graphgain.measuring.summary import quantity

OTHER = "vllm bench serve"
_TIMEOUT_S = 300

Client = Callable[[int, int], list[float]]
"""TTFTs in ms at a length in tokens, at a turn."""


def compare(
    target: Target, model: Path, lengths: Sequence[int], sweep: Sweep, rounds: int
) -> list[dict[str, Any]]:
    """For each length the ClientCheck without engine and mode: `rounds` turns of each client.

    Who is first changes from turn to turn. The first turn warms up and is not kept: the other
    client's first run loads its tokenizer. Raises MeasureError where the other client fails.
    """

    def ours(isl: int, turn: int) -> list[float]:
        return measure_length(target, isl, sweep, run=turn + 1).ttft_ms

    with vllm_bench(target, model, sweep) as other:
        found: dict[int, dict[Client, list[list[float]]]] = {
            isl: {ours: [], other: []} for isl in lengths
        }
        for turn in range(rounds + 1):
            for isl in lengths:
                for client in (ours, other) if turn % 2 else (other, ours):
                    found[isl][client].append(client(isl, turn))
    return [_check(isl, each[ours][1:], each[other][1:]) for isl, each in found.items()]


@contextmanager
def vllm_bench(target: Target, model: Path, sweep: Sweep) -> Iterator[Client]:
    """`vllm bench serve` as a client; its process lives from the beginning of the block to its end.

    The client raises MeasureError where a run fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        result, log = Path(folder) / "result.json", Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                python_module(bench_process.__name__),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                env=child_environment(),
                start_new_session=True,
            )

        def client(isl: int, turn: int) -> list[float]:
            result.unlink(missing_ok=True)
            error = _ask(process, _arguments(target, model, sweep, isl, turn, result))
            if error:
                raise MeasureError(f"{OTHER} failed ({error}). {tail(log)}")
            (found,) = read_foreign(result)
            return [float(ms) for ms in found["ttft_ms"]["samples"][0]]

        try:
            yield client
        finally:
            process.kill()
            process.communicate()


def _arguments(
    target: Target, model: Path, sweep: Sweep, isl: int, turn: int, result: Path
) -> list[str]:
    return [
        *("--backend", "openai", "--base-url", target.url, "--endpoint", "/v1/completions"),
        *("--model", str(model), "--served-model-name", sweep.served),
        *("--tokenizer", str(model), "--dataset-name", "random"),
        *("--random-input-len", str(isl), "--random-output-len", "1"),
        *("--random-range-ratio", "0", "--num-prompts", str(sweep.requests)),
        *("--num-warmups", str(sweep.warmup), "--max-concurrency", "1"),
        *("--ignore-eos", "--seed", str(1000 * isl + turn), "--disable-tqdm"),
        *("--percentile-metrics", "ttft", "--save-result", "--save-detailed"),
        *("--result-dir", str(result.parent), "--result-filename", result.name),
    ]


def _ask(process: "subprocess.Popen[str]", arguments: Sequence[str]) -> str | None:
    """Have the process make one run; what went wrong, or None."""
    assert process.stdin is not None and process.stdout is not None
    watchdog = threading.Timer(_TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        print(json.dumps(arguments), file=process.stdin, flush=True)
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    finally:
        watchdog.cancel()
    if not answer:
        return f"it ended, or took more than {_TIMEOUT_S} s"
    error: str | None = json.loads(answer)["error"]
    return error


def _check(
    isl: int, ours: Sequence[Sequence[float]], other: Sequence[Sequence[float]]
) -> dict[str, Any]:
    pairs = zip(_medians(ours), _medians(other), strict=True)
    return {
        "isl_tokens": isl,
        "other": OTHER,
        "ours_ms": quantity(ours, keep_samples=False),
        "other_ms": quantity(other, keep_samples=False),
        "difference_ms": quantity([[a - b] for a, b in pairs], keep_samples=False),
    }


def _medians(turns: Sequence[Sequence[float]]) -> list[float]:
    return [float(quantity([turn], keep_samples=False)["median"]) for turn in turns]
