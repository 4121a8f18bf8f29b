"""Our client beside `vllm bench serve` on one running server, by turns."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphgain.engines.client import Target
from graphgain.engines.foreign import read_foreign
from graphgain.engines.points import Sweep, measure_length
from graphgain.measuring.process import run_program
from graphgain.measuring.summary import quantity

OTHER = "vllm bench serve"
_TIMEOUT_S = 300


def compare(
    target: Target, model: Path, lengths: Sequence[int], sweep: Sweep, rounds: int
) -> list[dict[str, Any]]:
    """For each length the ClientCheck without engine and mode: `rounds` turns of each client.

    Raises MeasureError where the other client fails.
    """
    ours: dict[int, list[list[float]]] = {isl: [] for isl in lengths}
    other: dict[int, list[list[float]]] = {isl: [] for isl in lengths}
    for turn in range(rounds):
        for isl in lengths:
            ours[isl].append(measure_length(target, isl, sweep, run=turn + 1).ttft_ms)
            other[isl].append(vllm_bench(target, model, isl, sweep, seed=1000 * isl + turn))
    return [
        {
            "isl_tokens": isl,
            "other": OTHER,
            "ours_ms": quantity(ours[isl], keep_samples=False),
            "other_ms": quantity(other[isl], keep_samples=False),
            "difference_ms": quantity(
                [[a - b] for a, b in zip(_medians(ours[isl]), _medians(other[isl]), strict=True)],
                keep_samples=False,
            ),
        }
        for isl in lengths
    ]


def vllm_bench(target: Target, model: Path, isl: int, sweep: Sweep, seed: int) -> list[float]:
    """TTFTs in ms of the requests of one run of `vllm bench serve`."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        run_program(
            [
                *(sys.executable, "-m", "vllm.entrypoints.cli.main", "bench", "serve"),
                *("--backend", "openai", "--base-url", target.url, "--endpoint", "/v1/completions"),
                *("--model", str(model), "--served-model-name", sweep.served),
                *("--tokenizer", str(model), "--dataset-name", "random"),
                *("--random-input-len", str(isl), "--random-output-len", "1"),
                *("--random-range-ratio", "0", "--num-prompts", str(sweep.requests)),
                *("--num-warmups", str(sweep.warmup), "--max-concurrency", "1"),
                *("--ignore-eos", "--seed", str(seed), "--disable-tqdm"),
                *("--percentile-metrics", "ttft", "--save-result", "--save-detailed"),
                *("--result-dir", folder, "--result-filename", result.name),
            ],
            name=OTHER,
            timeout_s=_TIMEOUT_S,
        )
        (found,) = read_foreign(result)
    return [float(ms) for ms in found["ttft_ms"]["samples"][0]]


def _medians(turns: Sequence[Sequence[float]]) -> list[float]:
    return [float(quantity([turn], keep_samples=False)["median"]) for turn in turns]
