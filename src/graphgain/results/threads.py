"""Documents about Python threads and the GIL."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from graphgain.results.document import Document
from graphgain.results.quantity import Finite, Quantity, Strict

Microseconds = Annotated[float, Field(ge=0)]
Percent = Annotated[float, Field(ge=0, le=100)]
Background = Literal[
    "none",
    "compute",  # pure Python arithmetic
    "poll",  # a queue's get() with a timeout, in vain
    "io",  # a few bytes through a socket, again and again
]
GilInCall = Literal["released", "kept"]


class GilParameters(Strict):
    """How the launcher and the threads beside it are run; null where a source does not say.

    The launcher's call is a `stub`: "clock" is C that watches the clock for the wanted time,
    "memchr" a search in a buffer of calibrated length. `spin_us` is the length that most rows have.
    A row ends after `min_s` with its share of `intervals`, and after `limit_s` in any case, in each
    of `process_runs` processes, of which `processes_at_once` run at the same time.
    """

    python: str
    switch_interval_ms: Annotated[float, Field(gt=0)]
    stub: Literal["clock", "memchr"] | None = None
    spin_us: Microseconds | None = None
    poll_ms: Annotated[float, Field(gt=0)] | None = None
    io_bytes: Annotated[int, Field(ge=1)] | None = None
    intervals: Annotated[int, Field(ge=1)] | None = None
    min_s: Annotated[float, Field(ge=0)] | None = None
    limit_s: Annotated[float, Field(ge=0)] | None = None
    process_runs: Annotated[int, Field(ge=1)] | None = None
    processes_at_once: Annotated[int, Field(ge=1)] | None = None
    calls_per_step: Annotated[int, Field(ge=1)] | None = None


class Intervals(Strict):
    """Intervals between the starts of a launcher's calls, beside other Python threads.

    A percentile is null where the intervals are too few for it, and so are those of `quantiles_us`
    (at the document's `probabilities`). An interruption is an interval longer than
    half a switch interval. The modes are of logarithmic bins, 100 a decade.
    """

    background: Background
    background_threads: Annotated[int, Field(ge=0)]
    gil: GilInCall
    interval_us: Quantity
    p90_us: Microseconds | None
    p99_us: Microseconds | None
    p999_us: Microseconds | None
    max_us: Microseconds
    mode_us: Microseconds
    share_over_1ms_percent: Percent
    share_interrupted_percent: Percent
    interruption_us: Quantity | None
    interruption_mode_us: Microseconds | None
    calls_per_s: Quantity
    quantiles_us: list[Finite | None]


class GilRow(Intervals):
    """One setting of the launcher that calls a stub.

    `call_us` is the call alone and `empty_us` one that does not spin, both with the reading of the
    clock: their difference is the time in C, which is calibrated to be `spin_us`. With no thread
    beside the launcher, `bare_loop_us` is its loop in the main thread, without any other, and
    `above_bare_loop_percent` how far the same loop in a thread is above it, turn by turn.
    `holds_gil` is false in a free-threaded Python that runs without the lock.
    """

    python: str
    free_threaded: bool
    holds_gil: bool
    spin_us: Microseconds
    switch_interval_ms: Annotated[float, Field(gt=0)]
    empty_us: Quantity
    call_us: Quantity
    bare_loop_us: Quantity | None = None
    above_bare_loop_percent: Quantity | None = None


class GilGpuRow(Intervals):
    """One setting of the launcher that launches kernels through tvm-ffi and waits for the GPU.

    A step is `launches_per_step` launches and the wait. `gpu_us_per_kernel` is what the GPU needs
    for one of them behind the other; what of a step that leaves over, it idles.
    """

    launches_per_step: Annotated[int, Field(ge=2)]
    gpu_us_per_kernel: Quantity
    step_us: Quantity
    gpu_idle_percent: Quantity


class LockStepRow(Strict):
    """The step of a group of ranks, each of which has to finish before any goes on.

    "resampled": the slowest of `ranks` steps drawn from `n` steps of single ranks; "measured": `n`
    steps of that many real processes with a barrier. Null where `n` is too few for the percentile.
    """

    background: Background
    background_threads: Annotated[int, Field(ge=0)]
    ranks: Annotated[int, Field(ge=1)]
    source: Literal["resampled", "measured"]
    n: Annotated[int, Field(ge=1)]
    p50_us: Microseconds | None
    p90_us: Microseconds | None
    p99_us: Microseconds | None


class GilInterpreter(Strict):
    """A CPython that was looked for; `version` is null where it was not found."""

    release: str
    version: str | None
    free_threaded: bool
    skipped: str | None


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
    probabilities: list[Annotated[float, Field(ge=0, le=1)]] = []
    rows: list[GilRow] = []
    interpreters: list[GilInterpreter] = []
    lock_step: list[LockStepRow] = []
    lock_step_skipped: str | None = None
    gpu: list[GilGpuRow] = []
    gpu_skipped: str | None = None
    census: list[ProcessThreads] = []

    @model_validator(mode="after")
    def _quantiles_have_probabilities(self) -> Self:
        for row in (*self.rows, *self.gpu):
            if len(row.quantiles_us) != len(self.probabilities):
                raise ValueError(
                    f"a row has {len(row.quantiles_us)} quantiles, "
                    f"but there are {len(self.probabilities)} probabilities"
                )
        return self
