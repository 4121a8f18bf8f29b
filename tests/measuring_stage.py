"""A machine for tests of measuring: programs on the PATH in place of nvcc, nvidia-smi and a GPU.

The fakes stand where this program ends: nothing of it is replaced. `libcuda.so.1` and `pynvml` are
made unusable, so that the tests see the same machine on one with a GPU.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
UUID = "GPU-11111111-2222-3333-4444-555555555555"

NVIDIA_SMI = """#!/bin/sh
case "$1" in
  --query-compute-apps=*) printf '%s' "$FAKE_GPU_PIDS" ;;
  *)
    for field in $(echo "${1#--query-gpu=}" | tr ',' ' '); do
      case "$field" in
        name) value="${FAKE_GPU_NAME:-NVIDIA H200}" ;;
        uuid) value="$FAKE_GPU_UUID" ;;
        driver_version) value=580.65.06 ;;
        compute_cap) value=9.0 ;;
        memory.total) value=143771 ;;
        power.limit) value=700.00 ;;
        power.draw) value=71.25 ;;
        clocks.sm|clocks.max.sm) value=1980 ;;
        clocks.mem|clocks.max.mem) value=3201 ;;
        temperature.gpu) value=31 ;;
        ecc.mode.current) value=Enabled ;;
        clocks_throttle_reasons.active) value=0x0000000000000005 ;;
        *) value='[N/A]' ;;
      esac
      printf '%s%s' "$separator" "$value"; separator=', '
    done
    echo ;;
esac
"""

NVCC = """#!/bin/sh
[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.48"; exit 0; }
echo "$@" >> "$FAKE_NVCC_LOG"
while [ "$1" != -o ]; do shift; done
cp "$FAKE_PROGRAM" "$2" && chmod +x "$2"
"""


@dataclass(frozen=True)
class Stage:
    """A fake machine in one folder; `run` runs the command line there."""

    folder: Path

    @property
    def out(self) -> Path:
        """The results folder of the machine."""
        return self.folder / "results" / "h200"

    @property
    def environment(self) -> dict[str, str]:
        """What a process there sees; the real PATH is behind the fakes for sh, cat and cp."""
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": f"{self.folder / 'python'}:{ROOT / 'src'}",
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "TMPDIR": str(self.folder / "tmp"),
            "HOME": str(self.folder),
            "CUDA_HOME": str(self.folder / "no-cuda"),
            "FAKE_GPU_UUID": UUID,
            "FAKE_GPU_PIDS": "",
            "FAKE_NVCC_LOG": str(self.folder / "nvcc.log"),
            "FAKE_PROGRAM": str(self.folder / "program"),
        }

    def script(self, name: str, text: str) -> Path:
        """An executable in the folder, such as `bin/nvcc` or `program`."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def program(self, document: dict[str, Any]) -> None:
        """Make what nvcc "compiles" a program that prints this document."""
        printed = self.folder / "printed.json"
        printed.write_text(json.dumps(document))
        self.script("program", f'#!/bin/sh\necho run >> "{self.folder}/runs"\ncat "{printed}"\n')

    def runs(self) -> int:
        """How often the program was run."""
        log = self.folder / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line as a list."""
        return [sys.executable, "-m", "graphgain", *map(str, arguments)]

    def measure(self, experiment: str = "launch_floor", *arguments: str | Path) -> list[str]:
        """The command that measures into this stage."""
        return self.command(
            "measure", experiment, "--out", self.out, "--build", self.folder / "build", *arguments
        )

    def run(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            command,
            env={**self.environment, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def leftovers(self) -> list[str]:
        """Files in the results folder that are not documents."""
        return [path.name for path in self.out.iterdir() if path.name.startswith(".")]


def make_stage(folder: Path) -> Stage:
    """A machine with one GPU and nvcc, whose program prints a launch_floor document."""
    for name in ("bin", "python", "lib", "tmp"):
        (folder / name).mkdir()
    (folder / "python" / "pynvml.py").write_text("raise ImportError('not on this machine')\n")
    (folder / "lib" / "libcuda.so.1").write_text("not a library\n")
    stage = Stage(folder)
    stage.script("bin/nvidia-smi", NVIDIA_SMI)
    stage.script("bin/nvcc", NVCC)
    stage.program(launch_floor_output())
    return stage


def one_series(
    axes: dict[str, Any], metric: str, per: str, count: int, samples: list[float]
) -> dict[str, Any]:
    """A series as a native program prints it."""
    return {
        "axes": axes,
        "metric": metric,
        "per": per,
        "count": count,
        "warmup": 2,
        "stop": "converged",
        "noise": 0.01,
        "samples": samples,
    }


def one_output(benchmark: str, series: list[Any], counts: list[Any]) -> dict[str, Any]:
    """A native program's document."""
    return {
        "benchmark": benchmark,
        "device": {"name": "NVIDIA H200", "runtime_version": "13.0"},
        "parameters": {"cublas_version": 130000},
        "series": series,
        "counts": counts,
        "kernels": [],
    }


def launch_floor_output(shift: float = 0.0) -> dict[str, Any]:
    """Two paths, one argument count, graphs of 4 and 2048, and a queue of 1023 launches."""
    base = [3.0 + shift, 3.25 + shift, 3.5 + shift]
    series = [
        one_series({"path": "driver"}, "host_us", "launch", 512, base),
        one_series({"path": "runtime"}, "host_us", "launch", 512, base),
        one_series({"path": "driver", "arguments": 8}, "host_us", "launch", 512, base),
    ]
    for length in (4, 2048):
        axes = {"path": "graph", "graph_length": length}
        series += [
            one_series(axes, "instantiate_us", "graph", 1, [50.0, 51.0]),
            one_series(axes, "host_us", "graph", 1, [8.0, 8.0]),
            one_series(axes, "host_us", "launch", length, [8.0 / length] * 2),
            one_series(axes, "gpu_us", "node", length, [1.0, 1.25]),
        ]
    counts = [
        {"axes": {"path": path, "repeat": repeat}, "metric": "outstanding_launches", "value": 1023}
        for path in ("driver", "launch_ex_pdl")
        for repeat in (0, 1)
    ]
    return one_output("launch_floor", series, counts)
