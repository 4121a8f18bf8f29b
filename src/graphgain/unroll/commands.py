"""The command `graphgain unroll`: a forward of any transformers causal LM under three hosts."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

OUT = Path("build") / "unroll"
HOST_NAMES = {
    "eager": "Python",
    "cpp_eager": "C++",
    "cpp_eager_no_pdl": "C++ without PDL",
    "graph": "graph",
}


def add_commands(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add unroll to the command line."""
    unroll = commands.add_parser(
        "unroll", help="time one forward of a model under Python, a C++ loop and a CUDA graph"
    )
    unroll.add_argument(
        "--model",
        required=True,
        metavar="HF_ID_OR_CONFIG",
        help="an id or folder that transformers finds a configuration by (weights are random), "
        "or lean or transformers, for our Qwen3.8-27B",
    )
    unroll.add_argument("--tokens", required=True, type=int, help="tokens to prefill")
    unroll.add_argument(
        "--decode", action="store_true", help="time one decode step after so many tokens instead"
    )
    unroll.add_argument("--layers", type=int, default=0, help="cut the model short (default: all)")
    unroll.add_argument("--rounds", type=int, default=30, help="timed rounds of a process")
    unroll.add_argument("--process-runs", type=int, default=1)
    unroll.add_argument("--out", type=Path, help=f"folder of the document (default: {OUT}/MACHINE)")
    unroll.add_argument("--allow-busy", action="store_true", help="although the GPU is in use")
    unroll.set_defaults(command=_unroll)


def _unroll(options: argparse.Namespace) -> None:
    from graphgain.errors import ConfigError
    from graphgain.experiments import find_experiment
    from graphgain.measuring.machine import default_slug
    from graphgain.measuring.run import measure

    for name in ("tokens", "rounds", "process_runs"):
        if getattr(options, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1.")
    experiment = find_experiment("decode_graph_gain" if options.decode else "prefill_graph_gain")
    if options.model != "lean":
        needed = {key: value for key, value in experiment.packages.items() if key != "fla"}
        experiment = replace(experiment, packages=needed)
    path = measure(
        experiment,
        options.out or OUT / default_slug(),
        {
            "models": [options.model],
            "layers": options.layers,
            "rounds": options.rounds,
            "process_runs": options.process_runs,
            **_case(options.tokens, options.decode),
        },
        force=True,
        allow_busy=options.allow_busy,
    )
    print(table(json.loads(path.read_text(encoding="utf-8"))))
    print(f"written to {path}")


def _case(tokens: int, decode: bool) -> dict[str, Any]:
    """The parameters of the experiment that name this one forward."""
    if decode:
        return {"cached_tokens": tokens}
    return {"tokens": [tokens], "tokens_after_cached": tokens, "cached_tokens": [0]}


def table(document: Mapping[str, Any]) -> str:
    """The hosts of the document's own forward (its first, of prefills) as lines for a terminal."""
    if document["experiment"] == "decode_graph_gain":
        forward = document
        times = {row["host"]: row["step_ms"] for row in document["rows"]}
    else:
        forward = document["rows"][0]
        times = {host: forward[f"{host}_ms"] for host in HOST_NAMES if forward.get(f"{host}_ms")}
    issue_ms = forward["host_issue_ms"]["median"]
    graph_ms = times["graph"]["median"]
    launches = forward["launches"]
    lines = [f"{document['parameters']['model']}: {launches} launches, "
             f"{forward['pdl_launches']} with PDL"]  # fmt: skip
    for host, quantity in times.items():
        median = quantity["median"]
        lines.append(
            f"  {HOST_NAMES[host]:<16} {median:9.3f} ms"
            + ("" if host == "graph" else f"   graph saves {median - graph_ms:.3f} ms, "
               f"{1000 * (median - graph_ms) / launches:.2f} µs a launch")
        )  # fmt: skip
    ahead = issue_ms < times["cpp_eager"]["median"]
    lines.append(
        f"  the C++ loop issues in {issue_ms:.3f} ms: "
        + ("the host is ahead of the GPU" if ahead else "the GPU waits for the host")
    )
    differing = [
        HOST_NAMES[host] for host, same in forward["identical_outputs"].items() if not same
    ]
    lines.append(
        f"  other result than the graph's: {', '.join(differing)}"
        if differing
        else "  all hosts give the same bits"
    )
    return "\n".join(lines)
