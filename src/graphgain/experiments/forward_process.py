"""One process of `decode_graph_gain` or `prefill_graph_gain`: builds the models, captures each
forward, times it under every host, and prints all samples as one JSON document."""

import contextlib
import gc
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphgain.errors import GraphgainError, MeasureError

_COPIED_BYTES = 4 * 2**30
_COPIES = 10


def main(argument: str) -> None:
    """Run the cases given as JSON and print one document; a failure is one sentence."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # whatever a library has to say
            document = run(json.loads(argument))
    except GraphgainError as error:
        sys.exit(str(error))
    print(json.dumps(document))


def run(wanted: dict[str, Any]) -> dict[str, Any]:
    """Measure the `cases` of each model: pairs of tokens and cached tokens by the model's name.

    Other keys: `layers`, `checkpoint`, `hosts`, `rounds`, `warmup`, `profiled_rounds`, `build`.
    """
    import torch

    from graphgain.models.build import build_models, model_shapes

    device = torch.device("cuda")
    torch.cuda.set_device(0)
    bandwidth = copy_gb_s(device)
    _say("building models")
    cases: dict[str, list[tuple[int, int]]] = wanted["cases"]
    models = build_models(list(cases), wanted["layers"], wanted["checkpoint"], device)
    shapes = model_shapes(wanted["checkpoint"], wanted["layers"])
    forwards = []
    for name, make in models.items():
        for tokens, cached in cases[name]:
            _say(f"{name}: {tokens} tokens after {cached}")
            try:
                measured = _measure(make(tokens, cached), wanted)
            except torch.OutOfMemoryError:
                raise MeasureError(
                    f"{name}: the GPU's memory is too small for {tokens} tokens after {cached}; "
                    "use fewer tokens, fewer layers or a smaller model."
                ) from None
            forwards.append({"model": name, "tokens": tokens, "cached_tokens": cached, **measured})
            # The captured memory goes back before the next case.
            gc.collect()
            torch.cuda.empty_cache()
    return {
        "cuda_runtime": torch.version.cuda,
        "copy_gb_s": bandwidth,
        "decode_weight_gb": shapes.decode_weight_bytes() / 1e9,
        "forwards": forwards,
    }


def copy_gb_s(device: Any) -> float:
    """Bandwidth of a large copy on the GPU, bytes read and bytes written: the best of ten."""
    import torch

    source = torch.ones(_COPIED_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(_COPIES):
        first = torch.cuda.Event(enable_timing=True)
        last = torch.cuda.Event(enable_timing=True)
        first.record()
        target.copy_(source)
        last.record()
        torch.cuda.synchronize()
        best = min(best, first.elapsed_time(last))
    del source, target
    torch.cuda.empty_cache()
    return 2 * _COPIED_BYTES / best / 1e6


def _measure(forward: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    from graphgain.unroll.hosts import capture, counts, identical_outputs, time_hosts
    from graphgain.unroll.profile import profile_hosts

    captured = capture(forward, Path(wanted["build"]))
    result = {
        **counts(captured),
        "identical_outputs": identical_outputs(captured),
        "samples": asdict(
            time_hosts(captured, wanted["rounds"], wanted["warmup"], wanted["hosts"])
        ),
    }
    if wanted["profiled_rounds"]:
        result["pdl_nodes"] = [node.pdl for node in captured.unrolled.nodes]
        try:
            result["profile"] = profile_hosts(captured, wanted["profiled_rounds"])
        except MeasureError as error:  # some virtual machines have no CUPTI; times do not need it
            result["not_profiled"] = str(error)
    return result


def _say(text: str) -> None:
    print(f"{time.monotonic():9.1f}  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
