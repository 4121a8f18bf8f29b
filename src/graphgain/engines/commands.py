"""The command `graphgain ttft`: time to first token of serving engines, and what it consists of."""

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction


def add_commands(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add ttft to the command line."""
    ttft = commands.add_parser(
        "ttft",
        help="measure the time to first token of serving engines (config/engines)",
        description="Starts each engine in each mode, sweeps prompt lengths, profiles some of "
        "them, stops it, and writes ttft.json and ttft_breakdown.json. Every point is kept as soon "
        "as it is measured: an interrupted run goes on where it stopped.",
    )
    ttft.add_argument("modes", nargs="*", metavar="ENGINE[:MODE]", help="default: all of them")
    ttft.add_argument("--model", help="folder of a model (default: random weights, 27B shapes)")
    ttft.add_argument("--lengths", nargs="+", type=int, metavar="TOKENS", help="prompt lengths")
    ttft.add_argument("--requests", type=int, help="requests of each length")
    ttft.add_argument("--passes", type=int, help="passes over all lengths, the requests shared out")
    ttft.add_argument("--profile-lengths", nargs="+", type=int, metavar="TOKENS")
    ttft.add_argument("--profile-requests", type=int)
    ttft.add_argument("--no-breakdown", action="store_true", help="do not profile")
    ttft.add_argument("--check-rounds", type=int, help="turns against `vllm bench serve`")
    ttft.add_argument("--check-requests", type=int, help="requests of one turn")
    ttft.add_argument("--together", action="store_true", help="start an engine's modes at once")
    ttft.add_argument(
        "--keep",
        action="store_true",
        help="keep the modes of the document that are not measured now",
    )
    ttft.add_argument(
        "--force", action="store_true", help="measure again what is kept of earlier runs"
    )
    ttft.add_argument("--port", type=int, help="first port (default: any free one)")
    ttft.add_argument(
        "--attach",
        metavar="URL",
        help="a server that runs already (--served, --model); an interrupted sweep goes on by the "
        "URL: say --force where another server has it now",
    )
    ttft.add_argument("--attach-protocol", choices=("openai", "sglang"))
    ttft.add_argument("--served", help="the model's name there")
    ttft.add_argument("--list", action="store_true", help="list engines and modes, and end")
    ttft.add_argument(
        "--import",
        dest="foreign",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="print what results of vllm bench serve or of SGLang's benchmark hold",
    )
    ttft.add_argument(
        "--compose",
        nargs="+",
        type=Path,
        metavar="TRACE",
        help="print what the requests in a torch profiler's trace, or in an nsys export "
        "(.sqlite), consist of",
    )
    ttft.add_argument("--in-trace", type=int, help="how many requests a trace has")
    ttft.add_argument("--out", type=Path, help="the machine's folder (default: results/SLUG)")
    ttft.add_argument("--label", help="what tables call the machine (default: the GPU's name)")
    ttft.add_argument("--build", type=Path, help="where points are kept (default: build)")
    ttft.add_argument("--allow-busy", action="store_true", help="although the GPU is in use")
    ttft.add_argument("--allow-other-gpu", action="store_true", help="same GPU model, another card")
    ttft.set_defaults(command=_ttft)


def _ttft(options: argparse.Namespace) -> None:
    from graphgain.errors import ConfigError

    asked = {
        "--list": options.list,
        "--import": options.foreign,
        "--compose": options.compose,
        "--attach": options.attach,
        "ENGINE": options.modes,
    }
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} do not go together: one at a time.")
    if options.list:
        _list()
    elif options.foreign:
        _import(options.foreign)
    elif options.compose:
        if options.in_trace is None:
            raise ConfigError("Say how many requests each trace has: --in-trace COUNT.")
        for path in options.compose:
            _compose(path, options.in_trace)
    else:
        _measure(options)


def _measure(options: argparse.Namespace) -> None:
    from graphgain.engines.keeping import keep_other_modes
    from graphgain.engines.session import chosen_pairs
    from graphgain.errors import GraphgainError
    from graphgain.experiments import find_experiment
    from graphgain.files import write_atomically
    from graphgain.measuring.commands import configured, results_folder
    from graphgain.measuring.document import write_checked
    from graphgain.measuring.run import BUILD, measure

    settings = configured()
    overrides = {**settings.experiments.get("ttft", {}), **_overrides(options)}
    folder = results_folder(options.out, None, settings)
    build = options.build or BUILD
    for needed in (folder, build):
        _check_writable(needed)
    if options.attach:
        overrides["attach"] = _server(options.attach)
    pairs = chosen_pairs(find_experiment("ttft").with_overrides(overrides))
    elsewhere = all(engine.url for engine, _ in pairs)
    names = ["ttft"] if _without_breakdown(options) else ["ttft", "ttft_breakdown"]
    if len(names) > 1 and not any(engine.profiler for engine, _ in pairs):
        print("no breakdown: none of the chosen engines has a profiler in config/engines")
        names.remove("ttft_breakdown")
    if options.keep:
        _check_kept(folder / "ttft.json", find_experiment("ttft").with_overrides(overrides))
    for name in names:
        # The second one finds everything measured by the first.
        experiment = find_experiment(name)
        if elsewhere:
            # The GPU is the servers' business, wherever they run.
            experiment = replace(experiment, needs_gpu=False, check="")
        path = folder / f"{name}.json"
        older = path.read_text(encoding="utf-8") if path.exists() else None
        kept = _read(path) if options.keep and older else None
        try:
            measure(
                experiment,
                folder,
                overrides,
                label=options.label or settings.label,
                build=build,
                force=True,
                allow_busy=options.allow_busy,
                allow_other_gpu=options.allow_other_gpu,
            )
            if kept is not None:
                write_checked(path, keep_other_modes(_read(path), kept))
        except GraphgainError:
            if kept is not None and older:
                write_atomically(path, older)
            raise
        if older and kept is None:
            print(f"{path} is replaced, with all modes that it had (--keep keeps them)")
        for line in _outline(path):
            print(line)
        print(f"written to {path}")
        overrides["again"] = False
    print("now `make report` shows it")


def _without_breakdown(options: argparse.Namespace) -> bool:
    return bool(options.no_breakdown or options.attach or options.profile_lengths == [0])


def _check_kept(path: Path, parameters: Mapping[str, Any]) -> None:
    """Raises ConfigError, before anything is measured, where the modes that a document keeps were
    asked otherwise than the new ones will be."""
    from graphgain.errors import ConfigError

    if not path.exists():
        return
    kept = _read(path)["parameters"]
    for name, asked in (
        ("requests_per_length", "requests"),
        ("warmup_requests", "warmup_requests"),
        ("concurrency", "concurrency"),
    ):
        if kept.get(name) != parameters[asked]:
            raise ConfigError(
                f"{path}: its modes were measured with {name} {kept.get(name)}, these would be "
                f"with {parameters[asked]}; ask for the same, or measure into another folder "
                "(--out)."
            )


def _server(url: str) -> str:
    """A server's URL without the path of its API, which OpenAI's clients have at its end."""
    return url.rstrip("/").removesuffix("/v1")


def _check_writable(folder: Path) -> None:
    """Raises MeasureError where a folder cannot be made or written, before anything is measured."""
    from graphgain.errors import MeasureError

    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise MeasureError(f"{folder}: cannot be written; name another folder.")


def _outline(path: Path) -> Iterator[str]:
    from graphgain.engines.outline import breakdown_lines, ttft_lines
    from graphgain.results.serving import Ttft, TtftBreakdown
    from graphgain.results.store import read_document

    document = read_document(path)
    if isinstance(document, Ttft):
        return ttft_lines(document)
    assert isinstance(document, TtftBreakdown)  # there are two experiments about engines
    return breakdown_lines(document)


def _read(path: Path) -> dict[str, Any]:
    from graphgain.results.store import read_document

    read_document(path)  # whether it is a valid one
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    given = {
        "modes": options.modes,
        "model": options.model,
        "lengths": options.lengths,
        "requests": options.requests,
        "passes": options.passes,
        "profile_lengths": [0] if _without_breakdown(options) else options.profile_lengths,
        "profile_requests": options.profile_requests,
        "check_rounds": options.check_rounds,
        "check_requests": options.check_requests,
        "again": options.force,
        "together": options.together,
        "port": options.port,
        "attach": options.attach,
        "attach_protocol": options.attach_protocol,
        "served": options.served,
    }
    return {
        name: value
        for name, value in given.items()
        if not (value is None or value is False or value == [])
    }


def _list() -> None:
    from graphgain.engines.config import load_engines, unavailable
    from graphgain.measuring.gpu import find_gpu

    device = find_gpu()
    capability = device.facts.get("compute_capability") if device else None
    for engine in load_engines().values():
        print(f"{engine.engine}: {unavailable(engine, capability) or 'can be measured here'}")
        for name, mode in engine.modes.items():
            print(f"  {engine.engine}:{name}  {mode.label}")


def _import(paths: list[Path]) -> None:
    from graphgain.engines.foreign import read_foreign

    for path in paths:
        for found in read_foreign(path):
            ttft = found["ttft_ms"]
            print(
                f"{path}: {found['isl_tokens']} tokens, p50 {ttft['median']:.2f} ms "
                f"({ttft['low']:.2f}–{ttft['high']:.2f}), n = {ttft['n']}"
            )


def _compose(path: Path, requests: int) -> None:
    from graphgain.engines.composition import compose
    from graphgain.engines.kineto import ProfileError, read_trace
    from graphgain.engines.nsys import read_nsys

    read = read_nsys if path.suffix in (".sqlite", ".db") else read_trace
    trace = read(path)
    try:
        found = compose(trace, requests)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error} Is --in-trace {requests} right?") from None
    for number, one in enumerate(found, 1):
        print(
            f"{path}, request {number}: {one.span_ms:.2f} ms from the first launch to the last "
            f"operation's end\n"
            f"  GPU busy {one.busy_ms:.2f} ms ({one.busy_percent:.0f}%), "
            f"waiting for the host {one.waiting_for_host_ms:.2f} ms, "
            f"between kernels {one.between_kernels_ms:.2f} ms\n"
            f"  {one.launches} launches ({one.graph_launches} of graphs), "
            f"{one.interval_us:.1f} µs apart on average, {one.interval_median_us:.1f} µs median\n"
            f"  {one.kernels} kernels, {one.kernels_in_graphs} of them in graphs"
        )
