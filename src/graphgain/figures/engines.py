"""How the engines look in every figure: one colour each, a dash pattern for what is off."""

from dataclasses import dataclass

from graphgain.figures.style import BLUE, GREEN, ORANGE, PURPLE

ENGINE_COLORS = {"kern": ORANGE, "vllm": BLUE, "sglang": GREEN}

ENGINE_NAMES = {"kern": "Kern", "vllm": "vLLM", "sglang": "SGLang", "lean": "Fused forward"}

Dashes = tuple[float, ...]

SOLID: Dashes = ()
DASHED: Dashes = (4.0, 1.8)
DOTTED: Dashes = (1.2, 1.4)
DASH_DOTTED: Dashes = (5.0, 1.4, 1.2, 1.4)
LONG_DASHED: Dashes = (8.0, 1.8)


@dataclass(frozen=True)
class Mode:
    """A way of running an engine: its name behind the engine's, its dash pattern, and whether it is
    one more than the article's, which has a figure of its own."""

    name: str
    dashes: Dashes
    one_more: bool = False


# In the order of every figure and table.
_MODES = {
    ("kern", "default"): Mode("", SOLID),
    ("vllm", "piecewise"): Mode("piecewise graph", SOLID),
    ("vllm", "no-piecewise"): Mode("no piecewise", DASHED),
    ("vllm", "eager"): Mode("no graph at all", DOTTED, one_more=True),
    ("vllm", "piecewise-4096"): Mode("piecewise to 4,096", LONG_DASHED, one_more=True),
    ("vllm", "piecewise-flashinfer"): Mode("piecewise, FlashInfer", DASH_DOTTED, one_more=True),
    ("sglang", "breakable"): Mode("breakable graph", SOLID),
    ("sglang", "no-prefill-graph"): Mode("no prefill graph", DASHED),
    ("sglang", "hicache"): Mode("hicache", DOTTED, one_more=True),
    ("sglang", "hicache-l3"): Mode("hicache with files", DASH_DOTTED, one_more=True),
    ("lean", "cpp_eager"): Mode("C++ host, no engine", DASH_DOTTED),
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


def place(engine: str, mode: str) -> int:
    """A mode's place among all: those known here first, each engine's together."""
    known = list(_MODES)
    return known.index((engine, mode)) if (engine, mode) in _MODES else len(known)


def label(engine: str, mode: str) -> str:
    """What a line or a column is called: `vLLM, piecewise graph`."""
    name = look(engine, mode).name
    return f"{engine_name(engine)}, {name}" if name else engine_name(engine)
