"""Our client beside `vllm bench serve`, with a stand-in for the package vllm."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphgain.engines import client_check, session
from graphgain.engines.client import Target
from graphgain.engines.client_check import compare
from graphgain.engines.modes import Chosen, Model
from graphgain.engines.null_server import null_server
from graphgain.engines.points import Point, Sweep, write_point
from graphgain.engines.prompts import token_ids
from graphgain.errors import MeasureError

# Takes the arguments of vLLM's command, sends what is in its file and writes what it writes.
STAND_IN = """
import argparse, json, os, pathlib, sys, urllib.request

def add_cli_args(parser):
    for name in ("backend", "base-url", "endpoint", "model", "served-model-name", "dataset-name",
                 "dataset-path", "num-prompts", "num-warmups", "ready-check-timeout-sec",
                 "max-concurrency", "temperature", "percentile-metrics", "result-dir",
                 "result-filename"):
        parser.add_argument("--" + name)
    for name in ("ignore-eos", "disable-tqdm", "disable-shuffle", "skip-tokenizer-init",
                 "save-result", "save-detailed"):
        parser.add_argument("--" + name, action="store_true")

def main(args):
    print("a table for people")
    fault = os.environ.get("FAULT")
    if fault == "raises":
        raise ValueError("All requests failed.")
    if fault == "exits":
        sys.exit(2)
    if fault == "dies":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(9)
    with open(args.dataset_path) as lines:
        prompts = [json.loads(line)["prompt"] for line in lines]
    count = int(args.num_prompts)
    assert len(prompts) == count and args.skip_tokenizer_init and args.temperature == "0"
    with open(pathlib.Path(__file__).parent / "prompts", "a") as sent:
        for prompt in prompts:
            print(json.dumps(prompt), file=sent)
            body = json.dumps({"prompt": prompt}).encode()
            urllib.request.urlopen(args.base_url + args.endpoint, body).read()
    lengths = [1 if fault is None else len(prompt) + 1 for prompt in prompts]
    result = {
        "completed": count, "failed": 0, "num_prompts": count, "max_concurrency": 1,
        "input_lens": lengths, "output_lens": [1] * count,
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
    # What the clients take by themselves is known from a server that answers at once.
    assert short["ours_alone_ms"]["n"] == short["other_alone_ms"]["n"] == 6
    assert short["other_alone_ms"]["median"] == pytest.approx(2.0)


def test_both_clients_send_the_same_kind_of_prompt_and_none_twice(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours: list[tuple[int, ...]] = []

    def measured(target: Target, isl: int, sweep: Sweep, run: int) -> Point:
        ids = [token_ids(isl, each, sweep.vocabulary, run) for each in range(sweep.requests + 1)]
        ours.extend(map(tuple, ids))
        return Point(isl, [1.0] * sweep.requests, run, sweep.requests)

    monkeypatch.setattr(client_check, "measure_length", measured)
    with target() as server:
        compare(server, tmp_path, (128, 256), SWEEP, rounds=2)
    lines = (stand_in / "prompts").read_text().splitlines()
    other = [tuple(json.loads(line)) for line in lines]
    # Three turns at a server and three at the one that answers at once, which may see them again.
    assert [len(prompt) for prompt in other] == ([128] * 3 + [256] * 3) * 6
    assert len(set(other)) == len(other) / 2
    assert not set(ours) & set(other)
    assert all(1000 <= token < SWEEP.vocabulary for prompt in other for token in prompt)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", "failed .ValueError: All requests failed"),
        ("exits", "failed .SystemExit: 2"),
        ("dies", "(?s)it ended, or took more.*out of memory"),
        ("miscounts", "sent 128 tokens, and the server counted 129"),
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
    write_point(tmp_path, Point(128, [1.0, 2.0, 3.0], 1, 3))
    (tmp_path / "run.json").write_text("{}")
    assert session.is_complete(off, tmp_path, wanted, check=False)
    assert not session.is_complete(piecewise, tmp_path, wanted, check=True)
    (tmp_path / "checks.json").write_text(json.dumps([]))
    assert session.is_complete(piecewise, tmp_path, wanted, check=True)
