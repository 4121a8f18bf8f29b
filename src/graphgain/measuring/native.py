"""Native benchmarks: building them with nvcc, running them, and reading what they print.

A program prints one JSON document: `benchmark`, `device`, `parameters`, `series` (samples of one
`metric` per round, found by their `axes`), `counts` and `kernels`.
"""

import hashlib
import math
import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphgain.errors import MeasureError, MissingToolError
from graphgain.measuring.cuda import first_device
from graphgain.measuring.nvcc import WHERE_TO_GET, find_nvcc, version_text
from graphgain.measuring.process import run_json, run_to_end
from graphgain.measuring.summary import paired_difference, quantity
from graphgain.measuring.unavailable import Unavailable
from graphgain.sources import PACKAGE, content_hash

SOURCES = PACKAGE.parents[1] / "workflow" / "native"
FLAGS = ("-O2", "-std=c++17")
BUILD_TIMEOUT_S = 900
RUN_TIMEOUT_S = 3600
_LINK_LINES = 5
_ERROR_LINES = 3

Axes = Mapping[str, Any]


@dataclass(frozen=True)
class Series:
    """Samples of one metric, one per kept round, each divided by `count` already."""

    axes: Axes
    metric: str
    per: str
    count: int
    stop: str
    samples: tuple[float, ...]


@dataclass(frozen=True)
class Output:
    """What one run of a native program printed, checked."""

    device: Mapping[str, Any]
    parameters: Mapping[str, Any]
    series: tuple[Series, ...]
    counts: tuple[Mapping[str, Any], ...]
    kernels: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Runs:
    """The outputs of independent runs of one program with the same options."""

    name: str
    outputs: tuple[Output, ...]

    def series(self, metric: str, per: str, **axes: Any) -> list[Series]:
        """That series of every run: the one with exactly these axes; raises MeasureError."""
        return [self._only(output, metric, per, axes) for output in self.outputs]

    def axes(self, metric: str, per: str, *names: str) -> list[Axes]:
        """The axes of every series of that metric that has exactly the axes `names`, in order."""
        return [
            series.axes
            for series in self.outputs[0].series
            if (series.metric, series.per) == (metric, per) and set(series.axes) == set(names)
        ]

    def quantity(
        self, metric: str, per: str, *, keep_samples: bool = True, **axes: Any
    ) -> dict[str, Any]:
        """The Quantity over all runs."""
        found = self.series(metric, per, **axes)
        return quantity(
            [one.samples for one in found],
            stop=[one.stop for one in found],
            keep_samples=keep_samples,
        )

    def counts(self, metric: str, **axes: Any) -> list[list[float]]:
        """Per run, the values of that count whose axes include these; raises MeasureError."""
        found = [
            [
                count["value"]
                for count in output.counts
                if count["metric"] == metric and axes.items() <= count["axes"].items()
            ]
            for output in self.outputs
        ]
        if not all(found):
            raise MeasureError(f"{self.name} printed no {metric} for {_shown(axes)}.")
        return found

    def count(self, metric: str, **axes: Any) -> int:
        """A count that has to be the same in every run; raises MeasureError."""
        values = {value for run in self.counts(metric, **axes) for value in run}
        if len(values) != 1:
            raise MeasureError(
                f"{self.name} counted {metric} for {_shown(axes)} differently between runs: "
                f"{sorted(values)}."
            )
        return int(values.pop())

    def _only(self, output: Output, metric: str, per: str, axes: Axes) -> Series:
        found = [
            series
            for series in output.series
            if (series.metric, series.per) == (metric, per) and series.axes == axes
        ]
        if len(found) != 1:
            raise MeasureError(
                f"{self.name} printed {len(found)} series of {metric} per {per} for {_shown(axes)}."
            )
        return found[0]


def difference(minuend: Sequence[Series], subtrahend: Sequence[Series]) -> dict[str, Any]:
    """The Quantity of a paired difference between two series of every run.

    Only for series that took turns round by round.
    """
    return paired_difference(
        [one.samples for one in minuend],
        [one.samples for one in subtrahend],
        name=f"{minuend[0].metric} of {_shown(minuend[0].axes)}",
    )


def run_benchmark(
    name: str, options: Mapping[str, Any], *, process_runs: int, build: Path, arch: str
) -> Runs:
    """Build `workflow/native/NAME.cu` if need be, and run it `process_runs` times.

    `options` become `--name value`, lists joined with commas. Raises MissingToolError
    or MeasureError.
    """
    program = build_program(SOURCES / f"{name}.cu", build, arch)
    return run_program_repeatedly(program, name, options, process_runs=process_runs)


def run_program_repeatedly(
    program: Path, name: str, options: Mapping[str, Any], *, process_runs: int
) -> Runs:
    """Run a built program as `run_benchmark` does."""
    command = [str(program), *option_list(options)]
    return Runs(
        name,
        tuple(
            read_output(run_json(command, name=name, timeout_s=RUN_TIMEOUT_S), name)
            for _ in range(process_runs)
        ),
    )


def option_list(options: Mapping[str, Any]) -> list[str]:
    """{"kernel_us": [1.0, 2.0]} → ["--kernel-us", "1,2"]."""
    arguments: list[str] = []
    for name, value in options.items():
        values = value if isinstance(value, list) else [value]
        arguments += [f"--{name.replace('_', '-')}", ",".join(map(_option_text, values))]
    return arguments


def read_output(raw: Mapping[str, Any], name: str) -> Output:
    """Check what a program printed; raises MeasureError naming what is missing or wrong."""
    try:
        if raw["benchmark"] != name:
            raise MeasureError(f"{name} printed a document of benchmark {raw['benchmark']!r}.")
        series = tuple(_series(one, name) for one in raw["series"])
        counts = tuple(
            {
                "axes": dict(one["axes"]),
                "metric": str(one["metric"]),
                "value": _finite(one["value"], name, one["metric"]),
            }
            for one in raw["counts"]
        )
        device, parameters = dict(raw["device"]), dict(raw["parameters"])
        kernels = tuple(dict(one) for one in raw["kernels"])
    except KeyError as error:
        raise MeasureError(f"{name} printed a document without {error.args[0]!r}.") from None
    except (TypeError, ValueError) as error:
        raise MeasureError(f"{name} printed a malformed document: {error}.") from None
    if not series:
        raise MeasureError(f"{name} printed a document without any series.")
    return Output(device, parameters, series, counts, kernels)


def build_program(
    source: Path, build: Path, arch: str, flags: Sequence[str] = (), *, suffix: str = ""
) -> Path:
    """Compile a source with nvcc, or find it compiled; returns the path of the program.

    `flags` are added to nvcc's, `suffix` to the program's name. The name holds a hash of the
    source, the headers that it includes, the flags (those after `// link:` in its first lines too),
    the architecture and nvcc's version. `arch` is nvcc's `-arch`; `native` is the GPU found here.
    Raises MissingToolError without nvcc, MeasureError with the compiler's first errors.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise MissingToolError(f"nvcc was not found, and {source} needs it: {WHERE_TO_GET}.")
    if not source.is_file():
        raise MeasureError(f"{source}: there is no such source; run from a checkout of graphgain.")
    try:
        version = version_text(nvcc)
    except Unavailable as reason:
        raise MissingToolError(f"{reason}; repair it, or {WHERE_TO_GET}.") from None
    options = [f"-arch={resolved_arch(arch)}", *FLAGS, *flags]
    links = link_flags(source)
    key = "\0".join(
        [content_hash(included_files(source), source.parent), *options, *links, version]
    )
    folder = build / "native"
    target = folder / f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}{suffix}"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{source.stem}-", dir=folder) as scratch:
        made = Path(scratch) / target.name
        ended = run_to_end(
            [nvcc, *options, "-o", made, source, *links],
            name=f"nvcc for {source.name}",
            timeout_s=BUILD_TIMEOUT_S,
        )
        if ended.returncode != 0 or not made.exists():
            raise MeasureError(
                f"nvcc could not compile {source}:\n{_first_errors(ended.stdout + ended.stderr)}"
            )
        made.replace(target)
    return target


def resolved_arch(arch: str) -> str:
    """`native` as the architecture of the GPU found here, which the cache's key has to hold."""
    if arch != "native":
        return arch
    try:
        device = first_device()
    except Unavailable:
        device = None
    return f"sm_{device.compute_capability.replace('.', '')}" if device else arch


def link_flags(source: Path) -> list[str]:
    """The flags after `// link:` in the first lines of a source."""
    with source.open(encoding="utf-8") as lines:
        for _, line in zip(range(_LINK_LINES), lines, strict=False):
            if line.startswith("// link:"):
                return shlex.split(line.removeprefix("// link:"))
    return []


def included_files(source: Path) -> list[Path]:
    """A source and all that it includes in quotes from its own folder, directly or not."""
    found = {source}
    pending = [source]
    while pending:
        text = pending.pop().read_text(encoding="utf-8")
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            header = source.parent / name
            if header.is_file() and header not in found:
                found.add(header)
                pending.append(header)
    return sorted(found)


def _series(raw: Mapping[str, Any], name: str) -> Series:
    samples = tuple(_finite(value, name, raw["metric"]) for value in raw["samples"])
    if not samples:
        raise MeasureError(f"{name} printed a series of {raw['metric']} without samples.")
    return Series(
        axes=dict(raw["axes"]),
        metric=str(raw["metric"]),
        per=str(raw["per"]),
        count=int(raw["count"]),
        stop=str(raw["stop"]),
        samples=samples,
    )


def _finite(value: Any, name: str, metric: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MeasureError(f"{name} printed {value!r} as a value of {metric}, not a number.")
    return float(value)


def _first_errors(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|fatal)\b", line)] or lines
    return os.linesep.join(f"  {line}" for line in errors[:_ERROR_LINES]) or "  it printed nothing"


def _option_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(axes: Axes) -> str:
    return ", ".join(f"{name} {value}" for name, value in axes.items()) or "the whole run"
