"""Our client beside `vllm bench serve`, with a stand-in for the package vllm."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphgain.engines import session
from graphgain.engines.client import Target
from graphgain.engines.client_check import compare
from graphgain.engines.modes import Chosen, Model
from graphgain.engines.null_server import null_server
from graphgain.engines.points import Sweep, write_point
from graphgain.errors import MeasureError

# Takes the arguments of vLLM's command and writes the file that it writes.
STAND_IN = """
import argparse, json, os, pathlib, sys

def add_cli_args(parser):
    for name in ("backend", "base-url", "endpoint", "model", "served-model-name", "tokenizer",
                 "dataset-name", "random-input-len", "random-output-len", "random-range-ratio",
                 "num-prompts", "num-warmups", "max-concurrency", "seed", "percentile-metrics",
                 "result-dir", "result-filename"):
        parser.add_argument("--" + name)
    for name in ("ignore-eos", "disable-tqdm", "save-result", "save-detailed"):
        parser.add_argument("--" + name, action="store_true")

def get_tokenizer(name):
    with open(pathlib.Path(__file__).parent / "tokenizers", "a") as tokenizers:
        print(name, file=tokenizers)

def main(args):
    print("a table for people")
    get_tokenizer(args.tokenizer)
    fault = os.environ.get("FAULT")
    if fault == "raises":
        raise ValueError("All requests failed.")
    if fault == "exits":
        sys.exit(2)
    if fault == "dies":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(9)
    count, length = int(args.num_prompts), int(args.random_input_len)
    with open(pathlib.Path(__file__).parent / "seeds", "a") as seeds:
        print(args.seed, file=seeds)
    result = {
        "completed": count, "failed": 0, "num_prompts": count, "max_concurrency": 1,
        "input_lens": [length] * count, "output_lens": [1] * count,
        "ttfts": [0.001 * (1 + index) for index in range(count)], "errors": [""] * count,
    }
    pathlib.Path(args.result_dir, args.result_filename).write_text(json.dumps(result))
    return result
"""
SWEEP = Sweep(requests=3, warmup=1, concurrency=1, vocabulary=5000, served="m")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site/vllm/benchmarks"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "serve.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return folder


@contextmanager
def target() -> Iterator[Target]:
    with null_server() as url:
        yield Target(url, "openai")


def test_both_clients_take_turns_in_one_process_of_the_other(
    stand_in: Path, tmp_path: Path
) -> None:
    with target() as server:
        short, long = compare(server, tmp_path, (128, 256), SWEEP, rounds=2)
    assert (short["isl_tokens"], long["isl_tokens"]) == (128, 256)
    # Two turns of three requests: the first turn, which warms up, is not among them.
    assert short["other_ms"]["n"] == short["ours_ms"]["n"] == 6
    assert short["other_ms"]["median"] == pytest.approx(2.0)
    assert short["difference_ms"]["n"] == 2
    assert short["difference_ms"]["median"] == pytest.approx(short["ours_ms"]["median"] - 2, abs=1)
    # Every run has prompts of its own: nothing that a cache could know.
    seeds = (stand_in / "seeds").read_text().split()
    assert len(seeds) == len(set(seeds)) == 2 * 3
    # Reading a tokenizer takes longer than a request: turns would be far apart.
    assert (stand_in / "tokenizers").read_text().split() == [str(tmp_path)]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", "failed .ValueError: All requests failed"),
        ("exits", "failed .SystemExit: 2"),
        ("dies", "(?s)it ended, or took more.*out of memory"),
    ],
)
def test_another_client_that_fails_is_an_error(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setenv("FAULT", fault)
    with target() as server, pytest.raises(MeasureError, match=message):
        compare(server, tmp_path, (128,), SWEEP, rounds=1)


def test_vllm_missing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with target() as server, pytest.raises(MeasureError, match="No module named 'vllm'"):
        compare(server, tmp_path, (128,), SWEEP, rounds=1)


def test_a_mode_is_not_complete_without_the_comparison_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = session.load_engines()["vllm"]
    model = Model(tmp_path, "m", 1000, random=True)
    piecewise, off = (Chosen(engine, mode, model) for mode in ("piecewise", "no-piecewise"))
    wanted = session.Wanted(SWEEP, (128,), (), 5, (128,), check_rounds=2, check_requests=3)
    assert session.mode_to_check([piecewise, off], wanted) is None  # vllm is not installed
    monkeypatch.setattr(session, "is_importable", lambda name: True)
    assert session.mode_to_check([piecewise, off], wanted) is piecewise
    write_point(tmp_path, session.Point(128, [1.0, 2.0, 3.0], 1, 3))
    (tmp_path / "run.json").write_text("{}")
    assert session.is_complete(off, tmp_path, wanted, check=False)
    assert not session.is_complete(piecewise, tmp_path, wanted, check=True)
    (tmp_path / "checks.json").write_text(json.dumps([]))
    assert session.is_complete(piecewise, tmp_path, wanted, check=True)
