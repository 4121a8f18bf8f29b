"""Running a notebook's source in this process: its cells without a kernel, in half a second."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def run_cells(name: str, machines: list[str], results: Path, out: Path) -> dict[str, Any]:
    """Execute the cells of `notebooks/NAME.py` with these parameters; returns its variables."""
    source = (ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    cells = [cell for cell in source.split("\n# %%") if '"parameters"' not in cell.split("\n")[0]]
    variables: dict[str, Any] = {"machines": machines, "results": str(results), "out": str(out)}
    exec(compile("\n# %%".join(cells), f"notebooks/{name}.py", "exec"), variables)
    return variables


Executed = Callable[[str], tuple[dict[str, Any], Path]]
"""Variables and outputs of a notebook."""


def executed_once(machines: list[str], results: Path, folders: pytest.TempPathFactory) -> Executed:
    """Executes each notebook that it is asked for once, each in a folder of its own."""

    @cache
    def execute(notebook: str) -> tuple[dict[str, Any], Path]:
        out = folders.mktemp(notebook)
        return run_cells(notebook, machines, results, out), out

    return execute
