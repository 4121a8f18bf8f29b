"""Notebooks: reading what a jupytext source declares, and executing it with papermill.

A source is one `.py` in percent format. Its header declares what it reads and what it writes;
`run` converts it in a scratch folder, checks the parameters, executes it, and moves the declared
outputs to their places only when every cell ran.
"""

import ast
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphgain.errors import NotebookError

FIGURE_FILES = ("light.svg", "dark.svg", "light.png", "dark.png", "csv")
TABLE_FILES = ("csv", "md")


@dataclass(frozen=True)
class Notebook:
    """What the header of one notebook declares; `documents` are names of experiments."""

    name: str
    source: Path
    title: str
    documents: tuple[str, ...]
    figures: tuple[str, ...]
    tables: tuple[str, ...]

    def outputs(self) -> dict[str, str]:
        """Every file that executing the notebook writes below the build folder, by a short name."""
        files = {
            "notebook": f"notebooks/{self.name}.ipynb",
            "facts": f"facts/{self.name}.json",
        }
        for figure in self.figures:
            for end in FIGURE_FILES:
                files[f"figure_{figure}_{end.replace('.', '_')}"] = f"figures/{figure}.{end}"
        for table in self.tables:
            for end in TABLE_FILES:
                files[f"table_{table}_{end}"] = f"tables/{table}.{end}"
        return files


def read_notebook(source: Path) -> Notebook:
    """Read the header of a notebook source; raises NotebookError where it declares nothing."""
    header = yaml.safe_load(_header(source))
    declared = ((header or {}).get("jupyter") or {}).get("graphgain")
    keys = {"title", "documents", "figures", "tables"}
    if not isinstance(declared, dict) or set(declared) != keys:
        raise NotebookError(
            f"{source}: the header needs `jupyter: graphgain:` with exactly "
            f"{', '.join(sorted(keys))}."
        )
    return Notebook(
        name=source.stem,
        source=source,
        title=declared["title"],
        documents=tuple(declared["documents"]),
        figures=tuple(declared["figures"]),
        tables=tuple(declared["tables"]),
    )


def list_notebooks(folder: Path) -> list[Notebook]:
    """All notebooks of a folder, by name."""
    return [read_notebook(source) for source in sorted(folder.glob("*.py"))]


def declared_parameters(source: Path) -> list[str]:
    """The names that the cell tagged `parameters` assigns."""
    cells = source.read_text(encoding="utf-8").split("\n# %%")
    cell = next((cell for cell in cells if '"parameters"' in cell.partition("\n")[0]), None)
    if cell is None:
        raise NotebookError(f"{source}: no cell is tagged `parameters`.")
    tree = ast.parse(cell.partition("\n")[2])
    return [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def run(
    notebook: Notebook,
    parameters: Mapping[str, Any],
    build: Path,
    *,
    timeout_s: int = 600,
    start_timeout_s: int = 60,
) -> None:
    """Execute a notebook in the current folder and move its outputs below `build`.

    A parameter that the notebook does not have, a failing or hanging cell, a dead kernel, a
    declared output that was not written or an undeclared one that was: NotebookError, and what
    stood below `build` before stays as it was.
    """
    known = declared_parameters(notebook.source)
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise NotebookError(
            f"{notebook.source}: unknown parameter {', '.join(unknown)}; "
            f"the notebook has {', '.join(known)}."
        )
    scratch = build / ".running" / notebook.name
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        executed = _execute(
            notebook, {**parameters, "out": str(scratch)}, scratch, timeout_s, start_timeout_s
        )
        target = scratch / "notebooks" / f"{notebook.name}.ipynb"
        target.parent.mkdir()
        target.write_text(executed, encoding="utf-8")
        _move_outputs(notebook.outputs().values(), scratch, build, notebook.source)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _header(source: Path) -> str:
    if not source.is_file():
        raise NotebookError(f"{source}: there is no such notebook source.")
    lines = source.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "# ---" or "# ---" not in lines[1:]:
        raise NotebookError(f"{source}: a notebook source begins with a `# ---` header.")
    return "\n".join(line[2:] for line in lines[1 : lines.index("# ---", 1)])


def _execute(
    notebook: Notebook,
    parameters: Mapping[str, Any],
    scratch: Path,
    timeout_s: int,
    start_timeout_s: int,
) -> str:
    # Imported here: reading headers, which every Snakemake start does, needs none of this.
    import jupytext
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    # The kernel of this environment, whatever kernels a user has installed in the home folder.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    converted = jupytext.read(notebook.source)
    source, result = scratch / "source.ipynb", scratch / "executed.ipynb"
    source.write_text(jupytext.writes(converted, fmt="ipynb"), encoding="utf-8")
    try:
        papermill.execute_notebook(
            str(source),
            str(result),
            parameters=dict(parameters),
            kernel_name="python3",
            cwd=str(Path.cwd()),
            progress_bar=False,
            start_timeout=start_timeout_s,
            execution_timeout=timeout_s,
            extra_arguments=["--IPKernelApp.log_level=40"],  # errors only, no start-up warnings
        )
    except papermill.PapermillExecutionError as error:
        raise NotebookError(
            f"{notebook.source}: a cell failed with {error.ename}: {error.evalue}\n\n"
            f"{_indented(error.source)}\n"
        ) from None
    except CellTimeoutError:
        raise NotebookError(
            f"{notebook.source}: a cell ran for more than {timeout_s} s and was stopped."
        ) from None
    except (DeadKernelError, RuntimeError) as error:
        raise NotebookError(f"{notebook.source}: the kernel died ({error}).") from None
    finished = json.loads(result.read_text(encoding="utf-8"))
    source.unlink()
    result.unlink()
    return _stable(finished, str(scratch))


def _stable(notebook: dict[str, Any], scratch: str) -> str:
    """The notebook's text without anything that differs between two equal runs."""
    notebook["metadata"].pop("papermill", None)
    for index, cell in enumerate(notebook["cells"]):
        cell["metadata"].pop("papermill", None)
        cell["metadata"].pop("execution", None)
        source = "".join(cell["source"])
        cell["id"] = hashlib.sha256(f"{index}:{source}".encode()).hexdigest()[:12]
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    return text.replace(scratch, "build") + "\n"


def _move_outputs(declared: Iterable[str], scratch: Path, build: Path, source: Path) -> None:
    expected = set(declared)
    written = {
        path.relative_to(scratch).as_posix() for path in scratch.rglob("*") if path.is_file()
    }
    if written != expected:
        raise NotebookError(
            f"{source}: its header and its cells disagree: "
            f"declared but not written: {', '.join(sorted(expected - written)) or 'none'}; "
            f"written but not declared: {', '.join(sorted(written - expected)) or 'none'}."
        )
    for name in sorted(expected):
        (build / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(build / name)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" for line in code.splitlines())
