"""Measuring one experiment: from an empty place to a complete document, or to nothing new."""

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from graphgain.errors import BusyError, ConfigError, MeasureError, MissingToolError
from graphgain.experiments import Context, Experiment, missing_tools
from graphgain.measuring import SCHEMA_VERSION, gpu, lock
from graphgain.measuring.document import write_checked
from graphgain.measuring.machine import check_slug, probe_machine
from graphgain.measuring.process import termination_unwinds
from graphgain.measuring.provenance import (
    ROOT,
    command_line,
    experiment_sources,
    git_state,
    now_utc,
    software_versions,
    source_hash,
)

BUILD = ROOT / "build"
_OTHER_CARD = "Measured on another "


def measure(
    experiment: Experiment,
    out: Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    label: str | None = None,
    arch: str = "native",
    build: Path = BUILD,
    force: bool = False,
    allow_busy: bool = False,
    allow_other_gpu: bool = False,
) -> Path:
    """Measure an experiment into `out`, the folder of this machine, and return the document's path.

    The folder's name is the machine's slug; its `machine.json` is written if it is missing. A
    document that exists is left as it is, unless `force`. It is written only when it is complete
    and valid: any failure, signal or full disk leaves the old one.

    Raises ConfigError (parameters, slug), MissingToolError, BusyError (another measurement, or with
    `allow_busy` false another process on the GPU), MeasureError.
    """
    path = out / f"{experiment.name}.json"
    merged = experiment.with_overrides(parameters or {})
    slug = check_slug(out.name or out.resolve().name)
    if path.exists() and not force:
        print(f"{path} exists: not measured again (--force does)")
        return path
    if out.exists() and not os.access(out, os.W_OK):
        raise MeasureError(f"{out}: cannot be written; get permission, or use another --out.")
    reason = missing_tools(experiment)
    if reason:
        raise MissingToolError(reason)
    device = gpu.find_gpu()
    if experiment.needs_gpu and device is None:
        raise MissingToolError(
            f"{experiment.name} needs a GPU, and {gpu.NOT_FOUND} on this machine; "
            "measure on a machine that has one and bring its results with `graphgain import`."
        )

    with ExitStack() as stack:
        stack.enter_context(termination_unwinds())
        locked = device.lock_name if device and experiment.needs_gpu else lock.HOST
        stack.enter_context(lock.exclusive(locked))
        others = _other_processes(device, allow_busy) if experiment.needs_gpu else None
        machine = probe_machine(slug, label, gpu=device)
        notes = check_machine(out / "machine.json", machine, allow_other_gpu)
        print(f"measuring {experiment.name} on {machine['label']}", file=sys.stderr)

        context = Context(parameters=merged, build=build, arch=arch)
        sources, hashed = experiment_sources(experiment), source_hash(experiment)
        commit, dirty = git_state(sources)
        started, before = now_utc(), gpu.read_state(device) if device else None
        body = experiment.load()(context)
        ended, after = now_utc(), gpu.read_state(device) if device else None

        document = {
            "schema_version": SCHEMA_VERSION,
            "experiment": experiment.name,
            "machine": slug,
            "kind": "measured",
            "provenance": {
                "started_at": started,
                "ended_at": ended,
                "command": command_line(),
                "git_commit": commit,
                "git_dirty": dirty,
                "source_hash": hashed,
                "sources": [source.relative_to(ROOT).as_posix() for source in sources],
                "parameters": merged,
                "versions": software_versions(
                    experiment.packages.values(), device, context.versions
                ),
                "process_runs": merged["process_runs"],
                "gpu_before": before,
                "gpu_after": after,
                "other_gpu_processes": others,
            },
            "notes": [*notes, *body.pop("notes", [])],
            **body,
        }
        if not (out / "machine.json").exists():
            write_checked(out / "machine.json", machine)
        write_checked(path, document)
    return path


def _other_processes(device: gpu.LocalGpu | None, allow_busy: bool) -> list[int] | None:
    """Who else has work on the GPU before we start; raises BusyError unless that is allowed."""
    pids = gpu.compute_processes(device) if device else None
    if pids and not allow_busy:
        raise BusyError(
            f"Another process is computing on this GPU (pid {', '.join(map(str, pids))}), so "
            "times would not be ours alone; end it, or measure anyway with --allow-busy."
        )
    return pids


def check_machine(path: Path, machine: Mapping[str, Any], allow_other_gpu: bool) -> list[str]:
    """Notes for the document; raises where the folder's `machine.json` is of another machine."""
    try:
        existing = json.loads(path.read_text(encoding="utf-8"))
        known = existing["gpu"] or {}
        slug, kind, cpu = existing["slug"], existing["kind"], existing.get("cpu")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise MeasureError(
            f"{path}: cannot be read ({error.strerror}); --out has to be a machine's folder."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise MeasureError(
            f"{path}: not a machine document ({error!r}); restore it with git, or remove it."
        ) from None
    here = machine["gpu"] or {}
    if kind != "measured" or slug != machine["slug"]:
        raise ConfigError(
            f"{path}: describes the {kind} machine {slug!r}; measure into another --out."
        )
    if (known.get("uuid_hash"), known.get("name"), cpu) == (
        here.get("uuid_hash"),
        here.get("name"),
        machine["cpu"],
    ):
        return []
    same_model = known.get("name") == here.get("name") and known and here
    if same_model and allow_other_gpu:
        return [
            f"{_OTHER_CARD}{here['name']} (GPU {here['uuid_hash']}, CPU {machine['cpu']}) "
            "than machine.json describes."
        ]
    raise ConfigError(
        f"{path}: belongs to another machine ({_identity(known, cpu)}, here is "
        f"{_identity(here, machine['cpu'])}); measure into another folder with --slug or --out"
        + (", or add to this one with --allow-other-gpu." if same_model else ".")
    )


def other_card(note: str) -> str | None:
    """The hash of the card that a note of `check_machine` is about; None for any other note."""
    found = re.match(rf"{_OTHER_CARD}.*\(GPU (\w+), CPU ", note)
    return found[1] if found else None


def _identity(device: Mapping[str, Any], cpu: str | None) -> str:
    return f"GPU {device.get('name')} {device.get('uuid_hash')}, CPU {cpu}"
