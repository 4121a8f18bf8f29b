"""How the engines look in every figure: one colour each, a dash pattern for what is off."""

from dataclasses import dataclass

from graphgain.figures.style import BLUE, GREEN, ORANGE

ENGINE_COLORS = {"kern": ORANGE, "vllm": BLUE, "sglang": GREEN}

ENGINE_NAMES = {"kern": "Kern", "vllm": "vLLM", "sglang": "SGLang"}

Dashes = tuple[float, ...]

SOLID: Dashes = ()
DASHED: Dashes = (4.0, 1.8)
DOTTED: Dashes = (1.2, 1.4)


@dataclass(frozen=True)
class Mode:
    """A way of running an engine: its name behind the engine's, and its dash pattern."""

    name: str
    dashes: Dashes


_MODES = {
    ("kern", "default"): Mode("", SOLID),
    ("vllm", "piecewise"): Mode("piecewise graph", SOLID),
    ("vllm", "no-piecewise"): Mode("no piecewise", DASHED),
    ("sglang", "breakable"): Mode("breakable graph", SOLID),
    ("sglang", "no-prefill-graph"): Mode("no prefill graph", DASHED),
}


def look(engine: str, mode: str) -> Mode:
    """Name and dash pattern of a mode; one that the article does not have is dotted."""
    return _MODES.get((engine, mode), Mode(mode.replace("-", " "), DOTTED))


def label(engine: str, mode: str) -> str:
    """What a line or a column is called: `vLLM, piecewise graph`."""
    name = look(engine, mode).name
    return f"{ENGINE_NAMES[engine]}, {name}" if name else ENGINE_NAMES[engine]
