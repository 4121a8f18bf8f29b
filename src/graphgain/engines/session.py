"""Measuring engines: start each, ask it all that is not known yet, stop it, and keep what it said.

What is measured is kept in a folder a mode below the build folder, so that a later run starts only
servers of which something is missing.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphgain.engines.client import Target
from graphgain.engines.client_check import compare
from graphgain.engines.config import Engine, attached, load_engines, select, unavailable
from graphgain.engines.modes import Chosen, Model, find_model, profile_folder
from graphgain.engines.points import Point, Sweep, measure_points, read_kept, read_point
from graphgain.engines.profiling import (
    composed,
    forget_profile,
    is_profiled,
    profile_length,
)
from graphgain.engines.read_back import from_answer, json_answer, read_settings
from graphgain.engines.server import Server, await_health, free_port, started
from graphgain.errors import ConfigError, MeasureError, MissingToolError
from graphgain.files import write_atomically
from graphgain.measuring import gpu
from graphgain.measuring.packages import is_importable
from graphgain.measuring.process import run_to_end
from graphgain.measuring.provenance import now_utc

ALL = "all"
_CHECKS = "checks.json"
_COMMAND = "command.json"


@dataclass(frozen=True)
class Wanted:
    """What is to be known of every mode."""

    sweep: Sweep
    lengths: tuple[int, ...]
    profile_lengths: tuple[int, ...]
    profile_requests: int
    check_lengths: tuple[int, ...]
    check_rounds: int
    check_requests: int


@dataclass(frozen=True)
class Measured:
    """What is known of one mode: `run` is its EngineRun, `profiled` the lengths with a trace."""

    chosen: Chosen
    folder: Path
    points: list[Point]
    run: dict[str, Any]
    profiled: tuple[int, ...]
    checks: list[dict[str, Any]]

    def breakdown(self) -> list[dict[str, Any]]:
        """The rows of the breakdown, composed from the traces; raises ProfileError."""
        swept = {point.isl_tokens: point.quantity() for point in self.points}
        return [composed(self.folder, isl, swept.get(isl)) for isl in self.profiled]


def wanted_of(parameters: Mapping[str, Any], model: Model) -> Wanted:
    """What the parameters of the experiment `ttft` ask for; raises ConfigError where they cannot be
    met."""
    _check_parameters(parameters)
    return Wanted(
        Sweep(
            parameters["requests"],
            parameters["warmup_requests"],
            parameters["concurrency"],
            model.vocabulary,
            model.served,
            parameters["passes"],
        ),
        tuple(parameters["lengths"]),
        tuple(length for length in parameters["profile_lengths"] if length),
        parameters["profile_requests"],
        tuple(parameters["check_lengths"]),
        parameters["check_rounds"],
        parameters["check_requests"],
    )


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    least = {"requests": 1, "passes": 1, "warmup_requests": 0, "concurrency": 1, "port": 0}
    least |= {"profile_requests": 1, "check_rounds": 0, "check_requests": 1}
    for name, bound in least.items():
        if parameters[name] < bound:
            raise ConfigError(f"Parameter {name} is {parameters[name]}; it is at least {bound}.")
    if parameters["passes"] > parameters["requests"]:
        raise ConfigError("Parameter passes: every pass needs a request of each length.")
    if parameters["port"] > 65535:
        raise ConfigError(f"Parameter port is {parameters['port']}; ports end at 65535.")
    for name in ("lengths", "profile_lengths", "check_lengths"):
        lengths = parameters[name]
        none = name == "profile_lengths" and lengths == [0]
        if not lengths or (min(lengths) < 1 and not none) or len(set(lengths)) < len(lengths):
            raise ConfigError(
                f"Parameter {name} is {lengths}; it has lengths of at least one token, each once."
            )


def measure_engines(
    parameters: Mapping[str, Any], build: Path, *, finished_stays: bool = False
) -> tuple[list[Measured], Model, list[str]]:
    """Measure what is missing of the chosen modes; all that is known of them, and notes on modes
    that cannot be started here.

    What is finished of a server that ran already is measured again, as another one may run there by
    now, unless `finished_stays`. Raises MeasureError after all modes were tried if one of them
    failed, MissingToolError if there is nothing to show.
    """
    pairs = chosen_pairs(parameters)
    model = find_model(parameters["model"], parameters["served"], build)
    if parameters["attach"]:
        model = replace(model, random=False, known=bool(parameters["model"]))
        if not parameters["served"] and not parameters["model"]:
            model = replace(model, served=served_by(pairs[0][0]))
    wanted = wanted_of(parameters, model)
    device = gpu.find_gpu()
    facts = device.facts if device else {}
    folders: dict[Chosen, Path] = {}
    notes: list[str] = []
    pending: list[Chosen] = []
    every = [Chosen(engine, mode, model) for engine, mode in pairs]
    checked = mode_to_check(every, wanted)
    for chosen in every:
        engine = chosen.engine
        folder = chosen.folder(build / "ttft", wanted.sweep, facts.get("uuid_hash"))
        reason = unavailable(engine, facts.get("compute_capability"))
        if parameters["again"]:
            forget(folder)
        finished = is_complete(chosen, folder, wanted, check=chosen is checked)
        if finished and engine.url is not None and not finished_stays:
            forget(folder)
        if is_complete(chosen, folder, wanted, check=chosen is checked):
            folders[chosen] = folder
        elif reason:
            notes.append(f"{chosen.name} is not measured: {reason}")
        else:
            folders[chosen] = folder
            pending.append(chosen)
    if not folders:
        raise MissingToolError("No engine can be started here. " + " ".join(notes))
    failures = []
    for group in groups(pending, parameters["together"]):
        failures += _measure_group(group, folders, wanted, checked, parameters["port"])
    if failures and len(folders) == 1:
        raise MeasureError(failures[0])
    if failures:
        raise MeasureError(
            f"{len(failures)} of {len(folders)} modes failed; what the others gave is kept, and a "
            "run of them alone (ENGINE:MODE ...) writes it. " + "\n".join(failures)
        )
    return [read_measured(chosen, folders[chosen], wanted) for chosen in folders], model, notes


def chosen_pairs(parameters: Mapping[str, Any]) -> list[tuple[Engine, str]]:
    """Engine and mode of what is to be measured; raises ConfigError."""
    if parameters["attach"]:
        return [(attached(parameters["attach"], parameters["attach_protocol"]), "default")]
    return select(load_engines(), [name for name in parameters["modes"] if name != ALL])


def groups(pending: Sequence[Chosen], together: bool) -> list[list[Chosen]]:
    """What is up at the same time: one mode, or with `together` all modes of an engine."""
    if not together:
        return [[chosen] for chosen in pending]
    engines = dict.fromkeys(chosen.engine.engine for chosen in pending)
    return [[one for one in pending if one.engine.engine == name] for name in engines]


def profile_lengths(chosen: Chosen, wanted: Wanted) -> tuple[int, ...]:
    """The lengths to profile: none of an engine without a profiler."""
    return wanted.profile_lengths if chosen.engine.profiler else ()


def mode_to_check(every: Sequence[Chosen], wanted: Wanted) -> Chosen | None:
    """The mode whose server both clients are compared on, if any: one is enough, it is about the
    clients, and vLLM's, since the other client is vLLM's own."""
    if not (wanted.check_rounds and is_importable("vllm")):
        return None
    return next((chosen for chosen in every if chosen.engine.engine == "vllm"), None)


def is_complete(chosen: Chosen, folder: Path, wanted: Wanted, *, check: bool) -> bool:
    """Whether all that is wanted of a mode is in its folder; with `check` also the comparison."""
    return (
        (folder / "run.json").exists()
        and (not check or (folder / _CHECKS).exists())
        and all(read_point(folder, isl, wanted.sweep) for isl in wanted.lengths)
        and all(
            is_profiled(folder, isl, wanted.profile_requests)
            for isl in profile_lengths(chosen, wanted)
        )
    )


def read_measured(chosen: Chosen, folder: Path, wanted: Wanted) -> Measured:
    """What a folder holds of a mode, in the order that is wanted."""
    points = [read_point(folder, isl, wanted.sweep) for isl in wanted.lengths]
    checks = folder / _CHECKS
    return Measured(
        chosen,
        folder,
        [point for point in points if point is not None],
        read_kept(folder / "run.json"),
        profile_lengths(chosen, wanted),
        read_kept(checks) if checks.exists() else [],
    )


def _measure_group(
    group: Sequence[Chosen],
    folders: Mapping[Chosen, Path],
    wanted: Wanted,
    checked: Chosen | None,
    port: int,
) -> list[str]:
    """Start the servers of a group and measure one after the other; sentences about failures."""
    failures = []
    with ExitStack() as stack:
        up: list[tuple[Chosen, Server, str]] = []
        for chosen in group:
            begun = now_utc()
            try:
                up.append((chosen, _start(stack, chosen, folders[chosen], port), begun))
            except MeasureError as error:
                failures.append(str(error))
            port = port + 1 if port else 0
        seconds: dict[str, float] = {}
        for chosen, server, _ in list(up):
            try:
                health = chosen.engine.health
                seconds[chosen.name] = await_health(server, health.path, health.deadline_s)
            except MeasureError as error:
                failures.append(str(error))
        ready = [each for each in up if each[0].name in seconds]
        for chosen, server, begun in ready:
            beside = [other.name for other, _, _ in ready if other is not chosen]
            run = _engine_run(chosen, server, begun, seconds[chosen.name], beside, folders[chosen])
            _forget_other_version(chosen, folders[chosen], run["version"])
            try:
                _sweep(chosen, server, folders[chosen], wanted, run)
                # Before the profiles: a server may be slow for a while after one.
                if chosen is checked:
                    _check_client(chosen, server, folders[chosen], wanted)
                _profile(chosen, server, folders[chosen], wanted)
            except MeasureError as error:
                failures.append(str(error))
    return failures


def _start(stack: ExitStack, chosen: Chosen, folder: Path, port: int) -> Server:
    folder.mkdir(parents=True, exist_ok=True)
    profile_folder(folder).mkdir(exist_ok=True)
    if chosen.engine.url is not None:
        return Server(chosen.name, chosen.url(0), None, key=api_key(chosen.engine))
    number = free_port(port or None)
    command = chosen.command(number, folder)
    assert command is not None  # only an attached server has none
    write_atomically(folder / _COMMAND, json.dumps(command))
    print(f"{chosen.name}: starting; log {folder / 'server.log'}", file=sys.stderr)
    return stack.enter_context(
        started(
            chosen.name,
            command,
            chosen.url(number),
            folder / "server.log",
            chosen.environment(number, folder),
            last=chosen.last(number),
        )
    )


def _engine_run(
    chosen: Chosen, server: Server, begun: str, start_s: float, beside: list[str], folder: Path
) -> dict[str, Any]:
    engine = chosen.engine
    version, settings, missing = read_settings(server, engine.read_back)
    command = None
    if engine.url is None:
        command = json.loads((folder / _COMMAND).read_text(encoding="utf-8"))
    return {
        "engine": engine.engine,
        "mode": chosen.mode_name,
        "label": engine.label,
        "mode_label": chosen.mode.label,
        "version": version,
        "command": command,
        "environment": chosen.environment(0, folder) if command else {},
        "image": engine.docker.image if engine.docker else None,
        "image_digest": _digest(engine),
        "settings": settings,
        "unavailable": missing,
        "start_s": round(start_s, 1) if command else None,
        "started_at": begun,
        "ended_at": begun,
        "beside": beside,
        "notes": [] if command else ["The server ran already: how it was started is not known."],
    }


def _sweep(
    chosen: Chosen, server: Server, folder: Path, wanted: Wanted, run: dict[str, Any]
) -> None:
    measure_points(
        _target(chosen, server),
        *(wanted.lengths, wanted.sweep, folder, chosen.name, server.check_alive),
    )
    write_atomically(folder / "run.json", json.dumps({**run, "ended_at": now_utc()}, indent=1))


def _profile(chosen: Chosen, server: Server, folder: Path, wanted: Wanted) -> None:
    profiler = chosen.engine.profiler
    for isl in profile_lengths(chosen, wanted):
        if is_profiled(folder, isl, wanted.profile_requests):
            continue
        print(f"{chosen.name}: profiling {isl} tokens", file=sys.stderr, flush=True)
        assert profiler is not None  # there are no lengths without one
        profile_length(
            _target(chosen, server),
            *(isl, wanted.sweep, profiler),
            *(profile_folder(folder), wanted.profile_requests, folder),
        )
        try:
            composed(folder, isl, None)  # while the server runs: it may have to be profiled again
        except MeasureError as error:
            forget_profile(folder, isl)
            raise MeasureError(f"{chosen.name}, profile of {isl} tokens: {error}") from None


def _check_client(chosen: Chosen, server: Server, folder: Path, wanted: Wanted) -> None:
    if (folder / _CHECKS).exists():
        return
    print(f"{chosen.name}: beside vllm bench serve", file=sys.stderr, flush=True)
    rows = compare(
        _target(chosen, server),
        chosen.model.folder,
        wanted.check_lengths,
        replace(wanted.sweep, requests=wanted.check_requests),
        wanted.check_rounds,
    )
    named = [{"engine": chosen.engine.engine, "mode": chosen.mode_name, **row} for row in rows]
    write_atomically(folder / _CHECKS, json.dumps(named, indent=1))


def _target(chosen: Chosen, server: Server) -> Target:
    return Target(server.url, chosen.engine.protocol, api_key(chosen.engine))


def api_key(engine: Engine) -> str | None:
    """The key of a server that runs already, from the environment; one that we start has none."""
    return os.environ.get(engine.api_key_environment) if engine.url else None


def served_by(engine: Engine) -> str:
    """What a server that runs already calls its model; raises ConfigError where it does not say."""
    try:
        models = json_answer(f"{engine.url}/v1/models", api_key(engine))
        return str(from_answer(models, "data.0.id"))
    except LookupError as error:
        raise ConfigError(
            f"{engine.url} does not say what it serves ({error.args[0]}); is it a server of "
            "models? Say what requests are to call the model with --served."
        ) from None


def forget(folder: Path) -> None:
    """Remove what is kept of a mode: points, traces and what its server said."""
    for path in folder.glob("*.json*"):
        if path.name != _COMMAND:
            path.unlink()


def _digest(engine: Engine) -> str | None:
    if engine.docker is None:
        return None
    form = "{{index .RepoDigests 0}}"
    ended = run_to_end(
        ["docker", "inspect", "--format", form, engine.docker.image], name="docker", timeout_s=60
    )
    return ended.stdout.strip() or None


def _forget_other_version(chosen: Chosen, folder: Path, version: str | None) -> None:
    path = folder / "run.json"
    kept = read_kept(path).get("version") if path.exists() else version
    if kept != version:
        print(
            f"{chosen.name}: what is kept is of version {kept}, the server is {version}: "
            "measured again",
            file=sys.stderr,
        )
        forget(folder)
