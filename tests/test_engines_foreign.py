"""Results of other clients, and what servers say of themselves."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from graphgain.__main__ import main
from graphgain.engines.config import load_engines
from graphgain.engines.foreign import read_foreign
from graphgain.engines.model_folder import make_model_folder, vocabulary_of
from graphgain.engines.read_back import from_answer, from_log
from graphgain.errors import ConfigError, DocumentError

LOGS = Path(__file__).parent / "engine_logs"
SHAPES = Path(__file__).parents[1] / "config/engines/models/qwen3.8-27b/config.json"

# The fields that `vllm bench serve` 0.24.0 writes with --save-detailed, less those not read.
VLLM: dict[str, Any] = {
    "backend": "openai", "num_prompts": 3, "max_concurrency": 1, "completed": 3, "failed": 0,
    "input_lens": [128, 128, 128], "output_lens": [1, 1, 1], "ttfts": [0.05, 0.06, 0.055],
    "errors": ["", "", ""], "median_ttft_ms": 55.0,
}  # fmt: skip
# SGLang's bench_serving appends one line a run; with --output-details it has the lists.
SGLANG: dict[str, Any] = {
    "backend": "sglang", "random_input_len": 256, "completed": 2, "ttfts": [0.1, 0.12],
    "errors": ["", ""],
}  # fmt: skip


def written(tmp_path: Path, *results: dict[str, Any]) -> Path:
    path = tmp_path / "result.json"
    path.write_text("\n".join(json.dumps(result) for result in results))
    return path


def test_a_result_of_vllm_is_read(tmp_path: Path) -> None:
    (found,) = read_foreign(written(tmp_path, VLLM))
    assert found["isl_tokens"] == 128
    assert found["ttft_ms"]["median"] == pytest.approx(55) and found["ttft_ms"]["n"] == 3
    assert found["ttft_ms"]["samples"] == [[50.0, 60.0, 55.0]]


def test_lines_of_sglang_are_read(tmp_path: Path) -> None:
    found = read_foreign(written(tmp_path, SGLANG, {**SGLANG, "random_input_len": 512}))
    assert [one["isl_tokens"] for one in found] == [256, 512]
    assert found[0]["ttft_ms"]["median"] == pytest.approx(110)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"failed": 2}, "2 requests failed"),
        ({"errors": ["", "timeout", ""]}, "1 requests failed"),
        ({"ttfts": [0.05, 0.0, 0.06]}, "value of 0.0: a request failed"),
        ({"ttfts": None}, "no ttfts; .*--save-detailed"),
        ({"input_lens": [128, 130, 128]}, "input_lens has 2 different lengths"),
    ],
)
def test_a_result_that_is_no_point_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(DocumentError, match=rf"result\.json: .*{message}"):
        read_foreign(written(tmp_path, {**VLLM, **change}))


@pytest.mark.parametrize("text", ["", "[1]", "p50 55 ms"])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=r"result\.json"):
        read_foreign(path)


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ttft", "--import", str(written(tmp_path, VLLM))]) == 0
    assert "128 tokens, p50 55.00 ms" in capsys.readouterr().out


def test_settings_are_found_in_a_log() -> None:
    log = (
        "Initializing a V1 LLM engine with config: enable_prefix_caching=False, "
        "'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, "
        "'cudagraph_capture_sizes': [1, 2, 4, 8]\nUsing FLASH_ATTN attention backend\n"
        "Using FLASHINFER attention backend\n"
    )
    mode = r"'cudagraph_mode'\"?:\s*<?(?:CUDAGraphMode\.)?(\w+)"
    assert from_log(log, mode) == "FULL_AND_PIECEWISE"
    assert from_log(log, r"'cudagraph_capture_sizes'\"?:\s*(\[[\d, ]*\])") == [1, 2, 4, 8]
    assert from_log(log, r"enable_prefix_caching=(\w+)") is False
    assert from_log(log, r"Using (\w+) attention backend") == "FLASHINFER", "the last one counts"
    assert from_log("cache size: 92,842 tokens", r"size: ([\d,]+) tokens") == 92842
    with pytest.raises(LookupError, match="no such line"):
        from_log(log, r"chunk (\d+)")


RECORDED = {
    # Lines of servers on an H200 node: vLLM 0.24.0 and SGLang 0.5.16.
    ("vllm", "vllm_piecewise"): {
        "cudagraph_mode": "FULL_AND_PIECEWISE", "prefix_caching": False, "chunk_tokens": 8192,
        "attention": "FLASH_ATTN", "linear_attention": "Triton/FLA", "kv_cache_tokens": 92_842,
    },
    ("sglang", "sglang_breakable"): {"kv_cache_tokens": 847_483},
    ("sglang", "sglang_no_prefill_graph"): {"kv_cache_tokens": 847_483},
}  # fmt: skip


@pytest.mark.parametrize(("engine", "log"), list(RECORDED))
def test_settings_are_found_in_the_logs_of_real_engines(engine: str, log: str) -> None:
    text = (LOGS / f"{log}.log").read_text()
    found = {}
    for name, source in load_engines()[engine].read_back.settings.items():
        place, _, pattern = source.partition(" ")
        if place == "log":
            with contextlib.suppress(LookupError):
                found[name] = from_log(text, pattern)
    largest = {"vllm_piecewise": 512, "sglang_breakable": 8192, "sglang_no_prefill_graph": None}
    sizes = found.pop("capture_sizes", None)
    assert (max(sizes) if sizes else None) == largest[log]
    assert found == RECORDED[engine, log]


def test_settings_are_found_in_an_answer() -> None:
    answer = {"data": [{"max_model_len": 7}], "args": {"a": 1}}
    assert from_answer(answer, "data.0.max_model_len") == 7
    assert from_answer(answer, "args") == {"a": 1}
    for key in ("data.1.max_model_len", "data.0.other", "args.a.b"):
        with pytest.raises(LookupError, match="no "):
            from_answer(answer, key)


def test_the_model_folder_has_what_engines_load(tmp_path: Path) -> None:
    folder = make_model_folder(tmp_path / "model", SHAPES)
    assert vocabulary_of(folder) == 248_320
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    assert len(vocabulary) == 248_320 and vocabulary["t5"] == 5
    # SGLang ends without these where the architecture can see images.
    for name in ("preprocessor_config", "video_preprocessor_config"):
        processor = json.loads((folder / f"{name}.json").read_text())
        assert processor["processor_class"] == "Qwen3VLProcessor"


def test_a_model_without_a_vocabulary_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"config\.json: states no vocab_size"):
        vocabulary_of(tmp_path)
    with pytest.raises(ConfigError, match=r"none\.json: no such file"):
        make_model_folder(tmp_path, tmp_path / "none.json")
