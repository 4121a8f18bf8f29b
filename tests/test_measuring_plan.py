"""What is planned, by mode, by what exists and by what is installed."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from graphgain.config import Config
from graphgain.errors import ConfigError
from graphgain.experiments import EXPERIMENTS, Experiment, find_experiment, missing_tools
from graphgain.measuring.plan import make_plan, plan

GIL = EXPERIMENTS["gil"]
NEEDS_GPU = dataclasses.replace(GIL, name="needs_gpu", needs_gpu=True)
NEEDS_PACKAGE = dataclasses.replace(
    GIL, name="needs_package", packages={"no_such_module": "no-such-package"}
)
THREE = {one.name: one for one in (GIL, NEEDS_GPU, NEEDS_PACKAGE)}


def document(results: Path, slug: str, name: str) -> None:
    path = results / slug / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_never_plans_nothing(tmp_path: Path) -> None:
    planned = plan("never", tmp_path, "here", gpu=True, experiments=THREE)
    assert (planned.experiments, planned.skipped) == ((), {})


def test_auto_without_a_gpu_plans_nothing_and_says_why(tmp_path: Path) -> None:
    planned = plan("auto", tmp_path, "here", gpu=False, experiments=THREE)
    assert planned.experiments == ()
    assert set(planned.skipped) == set(THREE)
    assert all("no NVIDIA GPU" in reason for reason in planned.skipped.values())


def test_auto_plans_what_is_missing_here_and_possible(tmp_path: Path) -> None:
    document(tmp_path, "elsewhere", "gil")
    planned = plan("auto", tmp_path, "here", gpu=True, experiments=THREE)
    assert planned.experiments == ("gil", "needs_gpu")
    assert "pip install no-such-package" in planned.skipped["needs_package"]
    document(tmp_path, "here", "gil")
    assert plan("auto", tmp_path, "here", gpu=True, experiments=THREE).experiments == ("needs_gpu",)


def test_always_plans_what_exists_too_and_without_a_gpu_what_needs_none(tmp_path: Path) -> None:
    document(tmp_path, "here", "gil")
    assert plan("always", tmp_path, "here", gpu=True, experiments=THREE).experiments == (
        "gil",
        "needs_gpu",
    )
    planned = plan("always", tmp_path, "here", gpu=False, experiments=THREE)
    assert planned.experiments == ("gil",)
    assert "needs a GPU" in planned.skipped["needs_gpu"]


def test_a_plan_is_readable() -> None:
    text = str(plan("always", Path("nowhere"), "here", gpu=False, experiments=THREE))
    assert text.splitlines()[:2] == ["machine here", "  measure gil"]
    assert "skip    needs_gpu: needs_gpu needs a GPU" in text


def test_the_configuration_decides(tmp_path: Path) -> None:
    config = Config.model_validate({"measure": "never", "machine": {"slug": "my-node"}})
    assert make_plan(config, tmp_path).slug == "my-node"


def test_an_impossible_slug_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot name a machine"):
        plan("auto", tmp_path, "../escape")


def test_planning_loads_no_experiment_and_nothing_heavy() -> None:
    code = (
        "import sys, pathlib\n"
        "from graphgain.measuring.plan import plan\n"
        "plan('always', pathlib.Path('results'), 'here', gpu=True)\n"
        # pydantic checks the files of the engines, which decide whether one can be started.
        "heavy = {'numpy', 'torch', 'tvm_ffi', 'aiohttp', 'pandas', 'graphgain.experiments.gil'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_experiment_can_be_loaded_and_has_a_document() -> None:
    from graphgain.results import MODELS

    for name, experiment in EXPERIMENTS.items():
        assert name == experiment.name and name in MODELS
        assert experiment.source.is_file()
        assert callable(experiment.load())
        assert experiment.with_overrides({}) == dict(experiment.parameters)


def test_an_unknown_experiment_names_those_known() -> None:
    with pytest.raises(ConfigError, match="launch_floor"):
        find_experiment("lanch_floor")


def test_a_whole_number_will_do_for_a_fraction_but_not_the_reverse() -> None:
    assert GIL.with_overrides({"limit_s": 2, "spin_us": [1, 2.5]})["limit_s"] == 2
    for wrong in ({"process_runs": 1.5}, {"spin_us": [True]}, {"spin_us": 2.0}):
        with pytest.raises(ConfigError, match="must be like its default"):
            GIL.with_overrides(wrong)


def test_a_missing_tool_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    experiment: Experiment = dataclasses.replace(GIL, tools=("nvcc",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    reason = missing_tools(experiment)
    assert reason is not None and reason.startswith("gil needs nvcc") and reason.endswith(".")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\n")
    assert missing_tools(experiment) is not None, "not executable"
    nvcc.chmod(0o755)
    assert missing_tools(experiment) is None
