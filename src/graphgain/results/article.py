"""Documents that keep what the published article says outside its tables."""

from typing import Annotated, Literal

from pydantic import Field

from graphgain.results.document import Document
from graphgain.results.quantity import Quantity, Strict

Unit = Literal[
    "us", "ms", "percent", "tokens", "kernels", "requests", "processes", "threads", "runs"
]


class Statement(Strict):
    """One number in the article's prose; `about` says in our words what it counts.

    `printed` is the number as it stands there ("1.6k", "0.3–1"), without its unit.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    section: str
    about: str
    unit: Unit
    printed: Annotated[str, Field(pattern=r"^[0-9.]+k?([–-][0-9.]+k?)?$")]
    quantity: Quantity


class Statements(Document):
    """`statements`: every number of the article's prose, with its section."""

    experiment: Literal["statements"]
    rows: Annotated[list[Statement], Field(min_length=1)]


class Command(Strict):
    """A command line that the article prints."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    purpose: Literal["start", "benchmark", "compile"]
    section: str
    command: str


class Commands(Document):
    """`commands`: how the article starts the engines and runs the benchmark."""

    experiment: Literal["commands"]
    rows: Annotated[list[Command], Field(min_length=1)]
