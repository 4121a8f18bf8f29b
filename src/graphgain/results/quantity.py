"""A number with its interval: the unit that every result row is made of."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Finite = Annotated[float, Field(allow_inf_nan=False)]

Interval = Literal[
    "run medians",  # lowest and highest median among independent process runs
    "quartiles",  # first and third quartile of the samples
    "printed range",  # the source prints a range and no single value
    "printed repeats",  # the source prints each of several runs
    "confidence 95 %",  # of a difference or a mean, by the method that `notes` names
]


class Strict(BaseModel):
    """A model that refuses unknown keys, so that a typing error in a document is seen.

    NaN and infinity are refused everywhere: JSON has neither.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Quantity(Strict):
    """A measured or published number; the unit is in the name of the field that holds it.

    `low` and `high` mean what `interval` says. A published range without a central value has
    `median: null`. `runs` holds one median a process run (or a printed repeat), `samples` one
    list a run.
    """

    median: Finite | None = None
    low: Finite | None = None
    high: Finite | None = None
    interval: Interval | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    q1: Finite | None = None
    q3: Finite | None = None
    approximate: bool = False
    runs: list[Finite] | None = None
    samples: list[list[Finite]] | None = None
    stop: list[str] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.median is None and (self.low is None or self.high is None):
            raise ValueError("needs a median, or both low and high")
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high come together")
        if (self.low is None) != (self.interval is None):
            raise ValueError("low and high come with an interval that says how they are defined")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    @property
    def value(self) -> float:
        """The median, or the middle of the range where the source prints only a range."""
        if self.median is not None:
            return self.median
        assert self.low is not None and self.high is not None  # guaranteed by _consistent
        return (self.low + self.high) / 2


def printed(value: float, *, approximate: bool = False) -> Quantity:
    """A number as the source prints it, without an interval."""
    return Quantity(median=value, approximate=approximate)
