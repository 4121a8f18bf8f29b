"""Results of other clients: `vllm bench serve` (and vllm-bench) and SGLang's bench_serving."""

import json
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
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read ({error.strerror}).") from None
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
    failed = result.get("failed") or sum(bool(error) for error in result.get("errors") or [])
    if failed:
        raise DocumentError(f"{path}: {failed} requests failed; measure again.")
    ttfts_s = result.get("ttfts")
    if not ttfts_s:
        raise DocumentError(
            f"{path}: has no ttfts; run the benchmark with --save-detailed (vLLM) or "
            "--output-details (SGLang)."
        )
    # A failed or empty answer is counted as zero seconds by both.
    if min(ttfts_s) <= 0:
        raise DocumentError(f"{path}: ttfts has a value of {min(ttfts_s)}: a request failed.")
    lengths = set(result.get("input_lens") or [result.get("random_input_len")])
    if len(lengths) != 1 or None in lengths:
        raise DocumentError(
            f"{path}: input_lens has {len(lengths)} different lengths; a point has one."
        )
    return {
        "isl_tokens": int(lengths.pop()),
        "ttft_ms": by_request([1000 * seconds for seconds in ttfts_s]),
    }
