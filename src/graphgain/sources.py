"""Which of our own modules a file imports: Snakemake does not see imports, so rules ask here."""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parent


def imported_modules(*files: Path) -> list[Path]:
    """Every module of this package that the files import, directly or not, as sorted paths."""
    found: set[Path] = set()
    pending = [module for file in files for module in _imports(file)]
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending.extend(_imports(module))
    return sorted(found)


def content_hash(files: Iterable[Path], root: Path) -> str:
    """SHA-256 over names (relative to `root`) and contents, so that file times do not matter."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _imports(file: Path) -> set[Path]:
    modules: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            modules |= _files(name)
    return modules


def _files(name: str) -> set[Path]:
    """The files that importing a dotted name executes: the module and the packages above it."""
    first, *rest = name.split(".")
    if first != PACKAGE.name:
        return set()
    files = {PACKAGE / "__init__.py"}
    folder = PACKAGE
    for part in rest:
        if (folder / f"{part}.py").is_file():
            return files | {folder / f"{part}.py"}
        folder = folder / part
        if not (folder / "__init__.py").is_file():
            break  # a name inside a module, not a module
        files.add(folder / "__init__.py")
    return files
