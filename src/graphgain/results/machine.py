"""`machine.json`: the hardware and software that a folder of results belongs to."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from graphgain.results.document import Citation, Kind, Slug
from graphgain.results.quantity import Strict


class Gpu(Strict):
    """One GPU; `uuid_hash` tells two cards apart without publishing the serial."""

    name: str
    uuid_hash: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    memory_mib: int | None = None
    l2_bytes: int | None = None
    power_limit_w: float | None = None
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    memory_mhz: int | None = None
    memory_max_mhz: int | None = None
    ecc: bool | None = None
    mig: bool | None = None


class Machine(Strict):
    """One machine; `unavailable` gives the reason for each field that could not be read."""

    schema_version: Literal[1]
    slug: Slug
    label: Annotated[str, Field(min_length=1)]
    kind: Kind
    source: Citation | None = None
    gpu: Gpu | None = None
    driver: str | None = None
    cuda_runtime: str | None = None
    cuda_toolkit: str | None = None
    cpu: str | None = None
    cpu_count: int | None = None
    memory_gib: float | None = None
    kernel: str | None = None
    hypervisor: bool | None = None
    python: str | None = None
    torch: str | None = None
    unavailable: dict[str, str] = {}

    @model_validator(mode="after")
    def _origin(self) -> Self:
        if (self.kind == "published") != (self.source is not None):
            raise ValueError("a published machine, and only that, has a source")
        return self
