"""Measuring through Snakemake: without a GPU, and on a node with a stand-in for GPU and nvcc."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import Checkout, output
from measuring_stage import Stage, make_stage
from test_experiments_gil import SHORT

pytestmark = pytest.mark.workflow


def can_replace_dev() -> bool:
    """Whether this process may mount over /dev in a namespace of its own."""
    command = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev && touch /dev/nvidia0"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


NODE = """
mount -t tmpfs none /tmp/graphgain-dev-$$ && cd /dev &&
tar cf - null zero random urandom full tty fd stdin stdout stderr ptmx |
    tar xf - -C /tmp/graphgain-dev-$$ && mkdir /tmp/graphgain-dev-$$/shm &&
mount --move /tmp/graphgain-dev-$$ /dev && touch /dev/nvidia0 && cd "$1" && shift && exec "$@"
"""


def on_a_node(
    checkout: Checkout, stage: Stage, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run Snakemake where /dev has a GPU's file, and nvcc and nvidia-smi are the stage's."""
    prepared = f"mkdir -p /tmp/graphgain-dev-$$ && {NODE.strip()}"
    snakemake = (sys.executable, "-m", "snakemake", "--cores", "1", *arguments)
    environment = {
        **os.environ,
        **stage.environment,
        "PYTHONPATH": f"{stage.folder / 'python'}:{checkout.root / 'src'}",
    }
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", prepared, "sh", str(checkout.root), *snakemake],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_auto_measures_nothing_without_a_gpu_and_says_why(checkout: Checkout) -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has a GPU")
    done = checkout.snakemake("measure")
    assert "needs a GPU, and no NVIDIA GPU was found" in output(done)
    assert {path.name for path in (checkout.root / "results").iterdir()} == {
        path.name for path in (Path(__file__).parents[1] / "results").iterdir()
    }


def test_nothing_runs_beside_a_measurement() -> None:
    """However many cores Snakemake may use, one that takes them all has the machine for itself."""
    rules = (Path(__file__).parents[1] / "workflow/rules/measure.smk").read_text()
    measuring = [rule for rule in rules.split("\n    rule:") if "graphgain measure " in rule]
    assert len(measuring) == 1
    assert "threads: workflow.cores" in measuring[0]


@pytest.mark.skipif(not can_replace_dev(), reason="needs root, to mount over /dev in a namespace")
def test_a_node_measures_what_it_lacks_and_then_nothing(checkout: Checkout, tmp_path: Path) -> None:
    """Its one program prints a launch_floor document, so that experiment succeeds and the other
    native ones fail: that must not lose the one which succeeded."""
    (tmp_path / "stage").mkdir()
    stage = make_stage(tmp_path / "stage")
    machine = (
        "--config",
        "machine={'slug': 'my-node', 'label': 'My node', 'arch': 'sm_90'}",
        f"experiments={{'gil': {SHORT}}}",
    )
    first = on_a_node(checkout, stage, "measure", *machine)
    assert "Going to measure on this machine my-node" in output(first), output(first)
    assert "Compiling the programs of launch_floor for sm_90" in output(first)
    assert first.returncode != 0
    assert "measure_handoff" in output(first)
    document = checkout.root / "results/my-node/launch_floor.json"
    assert json.loads(document.read_text())["rows"][0]["host_us"]["median"] == 3.25
    assert not (checkout.root / "results/my-node/handoff.json").exists()

    runs = stage.runs()
    again = on_a_node(checkout, stage, "--dry-run", "measure", *machine)
    assert "measure_handoff" in output(again)
    assert "measure_launch_floor" not in output(again)

    (checkout.root / "build/native/launch_floor.built").unlink()
    shutil.rmtree(checkout.root / ".snakemake")
    figure = on_a_node(checkout, stage, "figure_launch_floor", *machine)
    assert figure.returncode == 0, output(figure)
    assert "My node" in (checkout.root / "build/tables/launch_floor.md").read_text()
    assert stage.runs() == runs
