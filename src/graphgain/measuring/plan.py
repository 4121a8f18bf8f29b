"""What would be measured on this machine. Every start of Snakemake asks, so it has to be quick."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphgain.experiments import EXPERIMENTS, Experiment, missing_tools
from graphgain.measuring.gpu import NOT_FOUND, device_files_exist
from graphgain.measuring.machine import check_slug, default_slug

if TYPE_CHECKING:
    from graphgain.config import Config

Mode = Literal["auto", "never", "always"]


@dataclass(frozen=True)
class Plan:
    """Experiments to measure into the folder `slug`, in order, and why others are not.

    An experiment that is in neither has its document already, or is not asked for.
    """

    slug: str
    experiments: tuple[str, ...]
    skipped: Mapping[str, str]

    def __str__(self) -> str:
        """The plan as lines for a terminal."""
        lines = [f"machine {self.slug}"]
        lines += [f"  measure {name}" for name in self.experiments] or ["  nothing to measure"]
        lines += [f"  skip    {name}: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)


def make_plan(config: "Config", results: Path) -> Plan:
    """The plan that a configuration asks for."""
    return plan(config.measure, results, config.machine.slug)


def plan(
    mode: Mode,
    results: Path,
    slug: str | None = None,
    *,
    gpu: bool | None = None,
    experiments: Mapping[str, Experiment] = EXPERIMENTS,
) -> Plan:
    """Decide by mode: `never` nothing; `auto`, on a machine with a GPU, what has no document yet;
    `always` all. What lacks a tool is skipped. `gpu` tells whether there is one, if known.

    Looks at names of files only, never at their times. Raises ConfigError for an impossible slug.
    """
    slug = check_slug(slug or default_slug())
    if mode == "never":
        return Plan(slug, (), {})
    has_gpu = device_files_exist() if gpu is None else gpu
    chosen: list[str] = []
    skipped: dict[str, str] = {}
    for name, experiment in experiments.items():
        if mode == "auto" and (results / slug / f"{name}.json").exists():
            continue
        reason = _reason(experiment, mode, has_gpu)
        if reason:
            skipped[name] = reason
        else:
            chosen.append(name)
    return Plan(slug, tuple(chosen), skipped)


def _reason(experiment: Experiment, mode: Mode, has_gpu: bool) -> str | None:
    if not has_gpu and mode == "auto":
        return f"{NOT_FOUND}, and `measure: auto` measures only where there is one."
    if not has_gpu and experiment.needs_gpu:
        return f"{experiment.name} needs a GPU, and {NOT_FOUND}."
    return missing_tools(experiment)
