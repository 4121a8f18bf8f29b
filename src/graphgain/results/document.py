"""What every result document holds, whatever the experiment."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from graphgain.results.quantity import Strict

SCHEMA_VERSION = 1

Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]
Kind = Literal["measured", "published"]


class Citation(Strict):
    """Where a published number was printed."""

    title: str
    author: str
    published: date
    url: str
    section: str


class GpuState(Strict):
    """What the GPU reported at one moment; a null means that the driver did not say."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: list[str] | None = None


class Provenance(Strict):
    """How, when and by which code a document was measured.

    `git_dirty` is about `sources` only; `parameters` are all that the experiment was given.
    """

    started_at: datetime
    ended_at: datetime
    command: list[str]
    git_commit: str | None
    git_dirty: bool | None
    source_hash: str
    sources: list[str]
    parameters: dict[str, Any] = {}
    versions: dict[str, str | None]
    process_runs: Annotated[int, Field(ge=1)]
    gpu_before: GpuState | None = None
    gpu_after: GpuState | None = None
    other_gpu_processes: list[int] | None = None


class Document(Strict):
    """The envelope: who measured, or who published, and under which schema."""

    schema_version: Literal[1]
    experiment: str
    machine: Slug
    kind: Kind
    source: Citation | None = None
    provenance: Provenance | None = None
    notes: list[str] = []

    @model_validator(mode="after")
    def _origin(self) -> Self:
        if self.kind == "published" and (self.source is None or self.provenance is not None):
            raise ValueError("a published document has a source and no provenance")
        if self.kind == "measured" and (self.provenance is None or self.source is not None):
            raise ValueError("a measured document has a provenance and no source")
        return self
