"""Our client beside `vllm bench serve` on one running server, by turns.

Both send the same kind of request: random token ids, one greedy token. Left to itself the other
client sends text, which the server has to tokenize, of consecutive tokens, and samples.
"""

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
from graphgain.engines.null_server import null_server
from graphgain.engines.points import Sweep, measure_length
from graphgain.engines.prompts import token_ids
from graphgain.engines.server import tail
from graphgain.errors import MeasureError
from graphgain.measuring.process import child_environment, python_module
from graphgain.measuring.summary import quantity

OTHER = "vllm bench serve"
_TIMEOUT_S = 300

Client = Callable[[Target, int, int], list[float]]
"""TTFTs in ms of a server at a length in tokens, at a turn."""

Turns = list[list[float]]


def compare(
    target: Target, model: Path, lengths: Sequence[int], sweep: Sweep, rounds: int
) -> list[dict[str, Any]]:
    """For each length the ClientCheck without engine and mode: `rounds` turns of each client, at
    the server and then at one that answers at once.

    Raises MeasureError where the other client fails.
    """

    def ours(server: Target, isl: int, turn: int) -> list[float]:
        return measure_length(server, isl, sweep, run=2 * turn).ttft_ms

    with vllm_bench(model, sweep) as other:
        found = _by_turns(ours, other, target, lengths, rounds)
        with null_server() as url:
            alone = _by_turns(ours, other, Target(url, "openai"), lengths, rounds)
    return [_check(isl, *found[isl], *alone[isl]) for isl in lengths]


def _by_turns(
    ours: Client, other: Client, target: Target, lengths: Sequence[int], rounds: int
) -> dict[int, tuple[Turns, Turns]]:
    """Our turns and the other's by length. Who is first changes from turn to turn; one turn more
    warms up and is not kept; no prompt is sent by both."""
    found: dict[int, tuple[Turns, Turns]] = {isl: ([], []) for isl in lengths}
    for turn in range(rounds + 1):
        for isl in lengths:
            pair = list(zip((ours, other), found[isl], strict=True))
            for client, turns in pair if turn % 2 else reversed(pair):
                turns.append(client(target, isl, turn))
    return {isl: (mine[1:], theirs[1:]) for isl, (mine, theirs) in found.items()}


@contextmanager
def vllm_bench(model: Path, sweep: Sweep) -> Iterator[Client]:
    """`vllm bench serve` as a client; its process lives from the beginning of the block to its end.

    The client raises MeasureError where a run fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        result, log = Path(folder) / "result.json", Path(folder) / "log"
        prompts = Path(folder) / "prompts.jsonl"
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

        def client(target: Target, isl: int, turn: int) -> list[float]:
            result.unlink(missing_ok=True)
            prompts.write_text(_prompts(isl, sweep, run=2 * turn + 1), encoding="utf-8")
            error = _ask(process, _arguments(target, model, sweep, prompts, result))
            if error:
                raise MeasureError(f"{OTHER} failed ({error}). {tail(log)}")
            (found,) = read_foreign(result)
            # It says 1 where the server does not tell how long a prompt was.
            if found["isl_tokens"] not in (1, isl):
                raise MeasureError(
                    f"{OTHER} sent {isl} tokens, and the server counted {found['isl_tokens']}."
                )
            return [float(ms) for ms in found["ttft_ms"]["samples"][0]]

        try:
            yield client
        finally:
            process.kill()
            process.communicate()


def _prompts(isl: int, sweep: Sweep, run: int) -> str:
    """The file of its dataset `custom`: a line a request. It warms up with the first one."""
    every = (token_ids(isl, index, sweep.vocabulary, run) for index in range(sweep.requests))
    return "".join(json.dumps({"prompt": ids}) + "\n" for ids in every)


def _arguments(target: Target, model: Path, sweep: Sweep, prompts: Path, result: Path) -> list[str]:
    return [
        *("--backend", "openai", "--base-url", target.url, "--endpoint", "/v1/completions"),
        *("--model", str(model), "--served-model-name", sweep.served),
        # Without a tokenizer prompts go out as they stand in the file, for one output token each.
        *("--skip-tokenizer-init", "--dataset-name", "custom", "--dataset-path", str(prompts)),
        *("--disable-shuffle", "--num-prompts", str(sweep.requests)),
        *("--num-warmups", str(sweep.warmup), "--ready-check-timeout-sec", "0"),
        *("--max-concurrency", "1", "--temperature", "0", "--ignore-eos", "--disable-tqdm"),
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
    isl: int, ours: Turns, other: Turns, ours_alone: Turns, other_alone: Turns
) -> dict[str, Any]:
    pairs = zip(_medians(ours), _medians(other), strict=True)
    return {
        "isl_tokens": isl,
        "other": OTHER,
        "ours_ms": quantity(ours, keep_samples=False),
        "other_ms": quantity(other, keep_samples=False),
        "difference_ms": quantity([[a - b] for a, b in pairs], keep_samples=False),
        "ours_alone_ms": quantity(ours_alone, keep_samples=False),
        "other_alone_ms": quantity(other_alone, keep_samples=False),
    }


def _medians(turns: Turns) -> list[float]:
    return [float(quantity([turn], keep_samples=False)["median"]) for turn in turns]
