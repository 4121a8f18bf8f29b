"""`machine.json`, the GPU's facts and state, and the machine's name."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphgain.errors import ConfigError
from graphgain.measuring import SCHEMA_VERSION, gpu, nvml
from graphgain.measuring.cuda import cuda_version
from graphgain.measuring.machine import SLUG, check_slug, default_slug, probe_machine, slugify
from graphgain.results import SCHEMA_VERSION as MODELS_VERSION
from graphgain.results.document import Document
from graphgain.results.machine import Machine
from measuring_stage import UUID, Stage, make_stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path)


def probe(stage: Stage, **environment: str) -> dict[str, object]:
    done = stage.run(stage.command("machine", "--slug", "h200"), **environment)
    assert done.returncode == 0, done.stderr
    machine = json.loads(done.stdout)
    Machine.model_validate(machine)
    assert isinstance(machine, dict)
    return machine


def test_constants_agree_with_the_models() -> None:
    assert SCHEMA_VERSION == MODELS_VERSION
    schema = Document.model_json_schema()["properties"]["machine"]
    assert schema["pattern"] == f"^{SLUG.pattern}$"


def test_the_gpu_is_read_through_nvidia_smi_where_there_is_no_nvml(stage: Stage) -> None:
    machine = probe(stage)
    assert machine["gpu"] == {
        "name": "NVIDIA H200",
        "uuid_hash": gpu.uuid_hash(UUID),
        "compute_capability": "9.0",
        "sm_count": None,
        "memory_mib": 143771,
        "l2_bytes": None,
        "power_limit_w": 700.0,
        "sm_mhz": 1980,
        "sm_max_mhz": 1980,
        "memory_mhz": 3201,
        "memory_max_mhz": 3201,
        "ecc": True,
        "mig": None,
    }
    assert machine["driver"] == "580.65.06" and machine["cuda_toolkit"] == "13.0"


def test_every_null_has_its_reason(stage: Stage) -> None:
    machine = probe(stage)
    device, unavailable = machine["gpu"], machine["unavailable"]
    assert isinstance(device, dict) and isinstance(unavailable, dict)
    nulls = {name for name, value in machine.items() if value is None}
    nulls |= {f"gpu.{name}" for name, value in device.items() if value is None}
    assert nulls == set(unavailable)
    assert "libcuda.so.1" in unavailable["gpu.sm_count"]


def test_without_a_gpu_the_reason_is_kept(stage: Stage) -> None:
    stage.script("bin/nvidia-smi", "#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    machine = probe(stage)
    assert machine["gpu"] is None
    assert isinstance(machine["unavailable"], dict)
    assert machine["unavailable"]["gpu"] == gpu.NOT_FOUND
    assert machine["cpu_count"]


def test_out_writes_it_once_and_never_over_another_gpus(stage: Stage) -> None:
    command = stage.command("machine", "--out", stage.out)
    assert stage.run(command).returncode == 0
    assert stage.run(command).returncode == 0
    before = (stage.out / "machine.json").read_bytes()
    refused = stage.run(command, FAKE_GPU_UUID="GPU-99999999-2222-3333-4444-555555555555")
    assert refused.returncode == 1 and "another machine" in refused.stderr
    assert (stage.out / "machine.json").read_bytes() == before


def test_nvidia_smi_answering_nonsense_is_no_gpu(stage: Stage) -> None:
    stage.script("bin/nvidia-smi", "#!/bin/sh\necho hello\n")
    assert probe(stage)["gpu"] is None


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("NVIDIA H200 node7", "h200-node7"),
        ("NVIDIA GeForce RTX 5070 Ti my_box", "rtx-5070-ti-my-box"),
        ("Intel(R) Xeon(R) Platinum 8480C 16 cores vm", "intel-xeon-platinum-8480c-16-cores-vm"),
        ("---", "machine"),
    ],
)
def test_names_become_slugs(text: str, slug: str) -> None:
    assert slugify(text) == slug


@given(st.text())
def test_every_slug_is_one(text: str) -> None:
    assert check_slug(slugify(text)) == slugify(text)


@pytest.mark.parametrize("slug", ["", "..", "a/b", "H200", "a--b", "-a", "a\n"])
def test_a_slug_that_cannot_be_a_folder_is_refused(slug: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a machine"):
        check_slug(slug)


def test_the_default_slug_is_always_the_same() -> None:
    assert default_slug() == default_slug()
    assert probe_machine()["slug"] == default_slug()


def test_throttle_reasons_have_names() -> None:
    assert nvml.throttle_reasons(0) == []
    assert nvml.throttle_reasons(0x1 | 0x4 | 0x40) == [
        "gpu_idle",
        "sw_power_cap",
        "hw_thermal_slowdown",
    ]
    assert nvml.throttle_reasons(0x8 | 0x1000) == ["hw_slowdown", "0x1000"]


def test_cuda_numbers_its_versions() -> None:
    assert [cuda_version(number) for number in (12080, 13000, 13020)] == ["12.8", "13.0", "13.2"]


@pytest.mark.gpu
def test_on_a_real_gpu_nothing_essential_is_missing() -> None:
    device = gpu.find_gpu()
    if device is None:
        pytest.skip("needs an NVIDIA GPU")
    assert re.fullmatch(r"\d+\.\d", device.facts["compute_capability"])
    assert device.facts["sm_count"] > 0 and device.facts["l2_bytes"] > 0
    state = gpu.read_state(device)
    assert state is not None and state["sm_mhz"] is not None
