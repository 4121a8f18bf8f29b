"""Results of other clients: `vllm bench serve` (and vllm-bench) and SGLang's bench_serving."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphgain.engines.points import by_request
from graphgain.errors import DocumentError


def read_foreign(path: Path) -> list[dict[str, Any]]:
    """One dictionary per result in a file: `isl_tokens` and `ttft_ms`, a Quantity.

    The file is one JSON object (vLLM) or one a line (SGLang). A result with failed requests, of
    several prompt lengths or without TTFTs is refused: DocumentError names the file and the field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read ({error}).") from None
    try:
        results = [json.loads(text)]
    except ValueError:
        try:
            results = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise DocumentError(f"{path}: neither JSON nor JSON lines ({error}).") from None
    if not results or not all(isinstance(one, dict) for one in results):
        raise DocumentError(f"{path}: has no result.")
    return [_result(path, one) for one in results]


def _result(path: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    failed = result.get("failed") or sum(bool(error) for error in _list(path, result, "errors"))
    if failed and failed != "0":
        raise DocumentError(f"{path}: {failed} requests failed; measure again.")
    ttfts_s = _list(path, result, "ttfts")
    if not ttfts_s:
        raise DocumentError(
            f"{path}: has no ttfts; run the benchmark with --save-detailed (vLLM) or "
            "--output-details (SGLang)."
        )
    odd = [value for value in ttfts_s if not _is_number(value)]
    if odd:
        raise DocumentError(f"{path}: ttfts has {odd[0]!r}, which is no number of seconds.")
    # A failed or empty answer is counted as zero seconds by both.
    if min(ttfts_s) <= 0:
        raise DocumentError(f"{path}: ttfts has a value of {min(ttfts_s)}: a request failed.")
    lengths = set(_list(path, result, "input_lens")) or {result.get("random_input_len")}
    if not all(isinstance(length, int) for length in lengths):
        raise DocumentError(f"{path}: has neither input_lens nor random_input_len in tokens.")
    if len(lengths) != 1:
        raise DocumentError(
            f"{path}: input_lens has {len(lengths)} different lengths; a point has one."
        )
    return {
        "isl_tokens": lengths.pop(),
        "ttft_ms": by_request([1000 * seconds for seconds in ttfts_s]),
    }


def _list(path: Path, result: Mapping[str, Any], name: str) -> list[Any]:
    found = result.get(name) or []
    if not isinstance(found, list):
        raise DocumentError(f"{path}: {name} is {found!r}, not a list.")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
