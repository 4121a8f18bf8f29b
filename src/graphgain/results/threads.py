"""Documents about Python threads and the GIL."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Quantity, Strict


class GilParameters(Strict):
    """A launcher thread calls C for `spin_us` with the GIL released, again and again, beside others.

    It does so for `duration_s` in each of `process_runs` processes.
    """

    python: str
    switch_interval_ms: Annotated[float, Field(gt=0)]
    duration_s: Annotated[float, Field(gt=0)] | None = None
    process_runs: Annotated[int, Field(ge=1)] | None = None


class GilRow(Strict):
    """Intervals between the launcher's calls beside `background_threads` computing threads.

    `call_us` is the calibrated call alone; `p99_us` is null where the samples are too few for it.
    """

    background_threads: Annotated[int, Field(ge=0)]
    spin_us: Annotated[float, Field(ge=0)]
    call_us: Quantity | None = None
    interval_us: Quantity
    p90_us: Annotated[float, Field(ge=0)]
    p99_us: Annotated[float, Field(ge=0)] | None
    max_us: Annotated[float, Field(ge=0)]
    share_over_1ms_percent: Annotated[float, Field(ge=0, le=100)]
    calls_per_s: Quantity


class ProcessThreads(Strict):
    """Python threads in one process of an engine."""

    process: str
    threads: Annotated[int, Field(ge=1)] | None
    issues_kernels: bool = False
    when: str | None = None


class Gil(Document):
    """`gil`: what other Python threads do to a thread that keeps releasing the GIL."""

    experiment: Literal["gil"]
    parameters: GilParameters
    rows: list[GilRow] = []
    census: list[ProcessThreads] = []
