"""Running a notebook's source in this process: its cells without a kernel, in half a second."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def run_cells(name: str, machines: list[str], results: Path, out: Path) -> dict[str, Any]:
    """Execute the cells of `notebooks/NAME.py` with these parameters; returns its variables."""
    source = (ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")
    cells = [cell for cell in source.split("\n# %%") if '"parameters"' not in cell.split("\n")[0]]
    variables: dict[str, Any] = {"machines": machines, "results": str(results), "out": str(out)}
    exec(compile("\n# %%".join(cells), f"notebooks/{name}.py", "exec"), variables)
    return variables
