"""How the engines look in every figure: one colour each, a dash pattern for what is off."""

from dataclasses import dataclass

from graphgain.figures.style import BLUE, GREEN, ORANGE, PURPLE

ENGINE_COLORS = {"kern": ORANGE, "vllm": BLUE, "sglang": GREEN}

ENGINE_NAMES = {"kern": "Kern", "vllm": "vLLM", "sglang": "SGLang", "lean": "Fused forward"}

ENGINE_ORDER = ("kern", "vllm", "sglang")

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
    ("sglang", "hicache"): Mode("hicache", DOTTED),
    ("sglang", "hicache-l3"): Mode("hicache with files", DOTTED),
    ("vllm", "eager"): Mode("no graph at all", DOTTED),
    ("lean", "cpp_eager"): Mode("C++ host, no engine", (5.0, 1.4, 1.2, 1.4)),
}


def look(engine: str, mode: str) -> Mode:
    """Name and dash pattern of a mode; one that the article does not have is dotted."""
    return _MODES.get((engine, mode), Mode(mode.replace("-", " "), DOTTED))


def color(engine: str) -> str:
    """An engine's colour; those that the article does not have share one."""
    return ENGINE_COLORS.get(engine, PURPLE)


def engine_name(engine: str) -> str:
    """What an engine is called."""
    return ENGINE_NAMES.get(engine, engine)


def rank(engine: str) -> int:
    """Its place among the engines: those of the article first."""
    return ENGINE_ORDER.index(engine) if engine in ENGINE_ORDER else len(ENGINE_ORDER)


def label(engine: str, mode: str) -> str:
    """What a line or a column is called: `vLLM, piecewise graph`."""
    name = look(engine, mode).name
    return f"{engine_name(engine)}, {name}" if name else engine_name(engine)
