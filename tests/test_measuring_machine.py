"""`machine.json`, the GPU's facts and state, and the machine's name."""

import json
import re
import shutil
import subprocess
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


LIBCUDA = """
#include <string.h>
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int index) { *device = 40 + index; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
  if (length < 10 || device != 40) return 1;
  strcpy(name, "NVIDIA X9");
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  memset(uuid, 0x11, 16);
  return device != 40;
}
int cuDeviceTotalMem_v2(unsigned long *bytes, int device) {
  *bytes = 150754820096ul;
  return device != 40;
}
int cuDriverGetVersion(int *version) { *version = 13010; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case 16: *value = 132; break;        /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    case 38: *value = 62914560; break;   /* CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE */
    case 75: *value = 10; break;         /* ..._COMPUTE_CAPABILITY_MAJOR */
    case 76: *value = 3; break;          /* ..._COMPUTE_CAPABILITY_MINOR */
    default: return 1;
  }
  return device != 40;
}
"""


def use_libcuda(stage: Stage, *, init: int = 0, count: int = 1) -> None:
    """Put a driver library in place of the unusable one."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler to stand in for the driver")
    source = stage.folder / "libcuda.c"
    source.write_text(LIBCUDA)
    options = [f"-DINIT={init}", f"-DCOUNT={count}", "-shared", "-fPIC"]
    library = stage.folder / "lib" / "libcuda.so.1"
    subprocess.run([compiler, *options, "-o", library, source], check=True)


def test_the_driver_tells_what_nvidia_smi_does_not(stage: Stage) -> None:
    use_libcuda(stage)
    machine = probe(stage)
    device = machine["gpu"]
    assert isinstance(device, dict)
    assert device["name"] == "NVIDIA X9"
    assert (device["sm_count"], device["l2_bytes"]) == (132, 62914560)
    assert device["compute_capability"] == "10.3"
    assert device["uuid_hash"] == gpu.uuid_hash("GPU-11111111-1111-1111-1111-111111111111")


def test_without_any_management_tool_the_driver_is_enough(stage: Stage) -> None:
    use_libcuda(stage)
    (stage.folder / "bin" / "nvidia-smi").unlink()
    machine = probe(stage)
    device = machine["gpu"]
    assert isinstance(device, dict) and isinstance(machine["unavailable"], dict)
    assert device["memory_mib"] == 143771 and device["sm_mhz"] is None
    assert "pynvml" in machine["unavailable"]["gpu.sm_mhz"]
    assert machine["driver"] is None and "driver" in machine["unavailable"]


@pytest.mark.parametrize(("init", "count"), [(100, 0), (0, 0)])
def test_a_driver_that_shows_no_device_is_no_gpu(stage: Stage, init: int, count: int) -> None:
    use_libcuda(stage, init=init, count=count)
    assert probe(stage)["gpu"] is None, "whatever nvidia-smi says: CUDA programs see none"


def test_a_driver_that_fails_leaves_nvidia_smi_and_its_reason(stage: Stage) -> None:
    use_libcuda(stage, init=999)
    machine = probe(stage)
    assert isinstance(machine["gpu"], dict) and machine["gpu"]["name"] == "NVIDIA H200"
    assert isinstance(machine["unavailable"], dict)
    assert "cuInit" in machine["unavailable"]["gpu.sm_count"]
    assert "999" in machine["unavailable"]["gpu.sm_count"]


PYNVML = '''
"""As much of pynvml as one H200 without MIG answers."""
from types import SimpleNamespace


class NVMLError(Exception):
    pass


class NVMLError_NotFound(NVMLError):
    pass


NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
_initialised = False


def nvmlInit():
    global _initialised
    _initialised = True


def nvmlShutdown():
    global _initialised
    _initialised = False


def nvmlDeviceGetHandleByUUID(uuid):
    assert _initialised
    if not uuid.startswith("GPU-1111"):
        raise NVMLError_NotFound("Not Found")
    return "handle"


def nvmlDeviceGetHandleByIndex(index):
    assert _initialised and index == 0
    return "handle"


def _answer(value):
    def query(handle, *arguments):
        assert _initialised and handle == "handle"
        return value

    return query


def nvmlSystemGetDriverVersion():
    return "580.1"


def nvmlDeviceGetClockInfo(handle, clock):
    return {NVML_CLOCK_SM: 345, NVML_CLOCK_MEM: 3201}[clock]


def nvmlDeviceGetMigMode(handle):
    raise NVMLError("Not Supported")


nvmlDeviceGetName = _answer("NVIDIA H200")
nvmlDeviceGetUUID = _answer("GPU-11111111-1111-1111-1111-111111111111")
nvmlDeviceGetMemoryInfo = _answer(SimpleNamespace(total=150754820096))
nvmlDeviceGetEnforcedPowerLimit = _answer(700000)
nvmlDeviceGetMaxClockInfo = _answer(1980)
nvmlDeviceGetEccMode = _answer([1, 1])
nvmlDeviceGetCurrentClocksThrottleReasons = _answer(1)
nvmlDeviceGetTemperature = _answer(30)
nvmlDeviceGetPowerUsage = _answer(71500)
nvmlDeviceGetComputeRunningProcesses = _answer([SimpleNamespace(pid=4711)])
'''


def test_nvml_is_asked_first(stage: Stage) -> None:
    (stage.folder / "python" / "pynvml.py").write_text(PYNVML)
    machine = probe(stage)
    device = machine["gpu"]
    assert isinstance(device, dict) and isinstance(machine["unavailable"], dict)
    assert (device["sm_mhz"], device["sm_max_mhz"], device["power_limit_w"]) == (345, 1980, 700.0)
    assert device["ecc"] is True and device["mig"] is None
    assert machine["driver"] == "580.1"
    assert "does not report it" in machine["unavailable"]["gpu.mig"]
    busy = stage.run(stage.measure())
    assert busy.returncode == 1 and "pid 4711" in busy.stderr


def test_every_name_that_is_used_exists_in_pynvml() -> None:
    real = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    source = Path(nvml.__file__).read_text()
    names = set(re.findall(r"\bnvml\.((?:nvml|NVML)\w+)", source))
    assert len(names) > 10
    assert {name for name in names if not hasattr(real, name)} == set()
    assert set(re.findall(r"^(?:def |class |)((?:nvml|NVML)\w+)\b", PYNVML, re.MULTILINE)) <= {
        name for name in dir(real)
    }
