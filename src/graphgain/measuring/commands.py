"""The commands about measuring. Each imports what it needs, so that `measure` runs without pydantic
and PyYAML."""

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgain.errors import ConfigError
from graphgain.measuring.packages import is_importable

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

    from graphgain.measuring.plan import Mode

CONFIG = Path("config/config.yaml")
RESULTS = Path("results")


@dataclass(frozen=True)
class Configured:
    """What the configuration says about measuring."""

    slug: str | None = None
    label: str | None = None
    mode: "Mode" = "auto"
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)


def add_commands(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add measure, machine, plan, status and import to the command line."""
    measure = commands.add_parser("measure", help="run one experiment and write its document")
    measure.add_argument("experiment", metavar="EXPERIMENT")
    _machine_options(measure)
    measure.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=JSON", dest="parameters"
    )
    measure.add_argument("--build", type=Path, help="where native programs are built")
    measure.add_argument("--arch", default="native", help="nvcc's -arch (default: native)")
    measure.add_argument("--force", action="store_true", help="measure what exists again")
    measure.add_argument(
        "--allow-busy", action="store_true", help="although another process computes on the GPU"
    )
    measure.add_argument(
        "--allow-other-gpu", action="store_true", help="add to results of the same GPU model"
    )
    measure.set_defaults(command=_measure)

    build = commands.add_parser("build", help="compile the native programs of an experiment")
    build.add_argument("experiment", metavar="EXPERIMENT")
    build.add_argument("--build", type=Path, help="where native programs are built")
    build.add_argument("--arch", default="native", help="nvcc's -arch (default: native)")
    build.set_defaults(command=_build)

    machine = commands.add_parser("machine", help="print what this machine is; --out writes it")
    _machine_options(machine)
    machine.set_defaults(command=_machine)

    plan = commands.add_parser("plan", help="print what would be measured here")
    plan.add_argument("--mode", choices=("auto", "never", "always"), help="default: as configured")
    plan.add_argument("--slug")
    plan.add_argument("--results", type=Path, default=RESULTS)
    plan.set_defaults(command=_plan)

    status = commands.add_parser("status", help="list every document: fresh, stale, missing, ...")
    status.add_argument("--results", type=Path, default=RESULTS)
    status.set_defaults(command=_status)

    bring = commands.add_parser("import", help="take in results measured on another machine")
    bring.add_argument("folder", metavar="DIR", type=Path)
    bring.add_argument("--results", type=Path, default=RESULTS)
    bring.add_argument(
        "--allow-other-gpu", action="store_true", help="join results of the same GPU model"
    )
    bring.add_argument(
        "--keep", action="store_true", help="keep the modes of engines that these results lack"
    )
    bring.set_defaults(command=_import)


def _machine_options(parser: "ArgumentParser") -> None:
    parser.add_argument("--out", type=Path, help="the machine's folder (default: results/SLUG)")
    parser.add_argument("--slug", help="name of the machine (default: from GPU and host name)")
    parser.add_argument("--label", help="what tables call the machine (default: the GPU's name)")


def _measure(options: argparse.Namespace) -> None:
    from graphgain.experiments import find_experiment
    from graphgain.measuring.run import BUILD, measure

    experiment = find_experiment(options.experiment)
    settings = configured()
    measure(
        experiment,
        results_folder(options.out, options.slug, settings),
        {
            **settings.experiments.get(experiment.name, {}),
            **dict(map(_parameter, options.parameters)),
        },
        label=options.label or settings.label,
        arch=options.arch,
        build=options.build or BUILD,
        force=options.force,
        allow_busy=options.allow_busy,
        allow_other_gpu=options.allow_other_gpu,
    )


def _build(options: argparse.Namespace) -> None:
    from graphgain.experiments import find_experiment
    from graphgain.measuring.native import SOURCES, build_program
    from graphgain.measuring.run import BUILD

    for name in find_experiment(options.experiment).programs:
        print(build_program(SOURCES / f"{name}.cu", options.build or BUILD, options.arch))


def _machine(options: argparse.Namespace) -> None:
    from graphgain.measuring.document import document_text, write_checked
    from graphgain.measuring.machine import probe_machine
    from graphgain.measuring.run import check_machine

    settings = configured()
    folder = results_folder(options.out, options.slug, settings)
    machine = probe_machine(folder.name, options.label or settings.label)
    print(document_text(machine), end="")
    if options.out:
        check_machine(folder / "machine.json", machine, allow_other_gpu=False)
        write_checked(folder / "machine.json", machine)


def _plan(options: argparse.Namespace) -> None:
    from graphgain.measuring.plan import plan

    settings = configured()
    mode = options.mode or settings.mode
    print(plan(mode, options.results, options.slug or settings.slug))


def _status(options: argparse.Namespace) -> None:
    from graphgain.freshness import check_document, check_machine, status_table
    from graphgain.measuring.gpu import device_files_exist
    from graphgain.measuring.machine import default_slug

    settings = configured()
    local = settings.slug or default_slug()
    found = {path.parent.name for path in options.results.glob("*/machine.json")} | {local}
    slugs = sorted(found, key=lambda slug: (not slug.endswith("-published"), slug))
    machines = {
        f"{slug} (this machine)" if slug == local else slug: check_machine(
            options.results / slug,
            settings.experiments,
            local=slug == local,
            gpu=device_files_exist(),
        )
        for slug in slugs
    }
    traces = {
        path.parent.name: [check_document(path)]
        for path in sorted(options.results.glob("trace-*/agent_workload.json"))
    }
    print(status_table(machines | traces))


def _import(options: argparse.Namespace) -> None:
    from graphgain.measuring.importing import import_results

    written, same = import_results(
        options.folder,
        options.results,
        allow_other_gpu=options.allow_other_gpu,
        keep=options.keep,
    )
    for path in written:
        print(f"imported {path}")
    for path in same:
        print(f"{path} is there already")


def results_folder(out: Path | None, slug: str | None, settings: Configured) -> Path:
    """The folder of this machine: its name is the slug. Raises ConfigError where both disagree."""
    from graphgain.measuring.machine import default_slug

    if out is None:
        return RESULTS / (slug or settings.slug or default_slug())
    folder = Path(out)
    name = folder.name or folder.resolve().name
    if slug and slug != name:
        raise ConfigError(
            f"--out {folder} and --slug {slug} disagree: "
            "the folder of a machine has the machine's name."
        )
    return folder


def configured() -> Configured:
    """The configuration, where there is one and the packages that read it; defaults otherwise."""
    if not CONFIG.exists():
        return Configured()
    if not (is_importable("pydantic") and is_importable("yaml")):
        print(
            f"graphgain: {CONFIG} is not read, as pydantic or PyYAML is not installed here; "
            "give --slug, --label and -p instead.",
            file=sys.stderr,
        )
        return Configured()
    from graphgain.config import load_config

    config = load_config(CONFIG)
    return Configured(config.machine.slug, config.machine.label, config.measure, config.experiments)


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if not equals:
            raise ValueError
        return name, json.loads(value)
    except ValueError:
        raise ConfigError(
            f"--parameter {text}: write NAME=VALUE, with the value as JSON, such as calls=200."
        ) from None
