"""A copy of the project in a folder of its own, which a test may build and change."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Checkout:
    """A copy of the project in a folder of its own, with its own git history."""

    root: Path

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy, with the copy's own package; output is captured as text."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=600
        )
        if check and done.returncode:
            pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{output(done)}")
        return done

    def snakemake(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in the copy on one core."""
        command = (sys.executable, "-m", "snakemake", "--cores", "1", *arguments)
        return self.run(*command, check=check)

    def planned(self, *arguments: str) -> list[str]:
        """Names of the rules that a dry run would execute, targets without work left out."""
        printed = output(self.snakemake(*arguments, "--dry-run", "--quiet", "rules"))
        if "Nothing to be done" in printed:
            return []
        table = printed.partition("Job stats:\n")[2].partition("\n\n")[0]
        rows = [line.split() for line in table.splitlines()[2:]]
        assert rows, f"a dry run without a table of jobs:\n{printed}"
        targets = {"report", "figures", "notebooks", "measure", "total"}
        names = [row[0] for row in rows if row[0] not in targets]
        return sorted(name for name in names if not name.startswith("figure_"))

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a text in a file; the text must be there."""
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} does not contain {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")


def output(done: subprocess.CompletedProcess[str]) -> str:
    """Everything that a command printed."""
    return done.stdout + done.stderr


def copy_checkout(target: Path) -> Checkout:
    """Copy the files that git tracks or would add, and commit them in a new repository."""
    git = ("git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(git, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    checkout = Checkout(target)
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    commit: Sequence[Sequence[str]] = (
        ("git", "init", "--quiet", "--initial-branch=main"),
        ("git", "add", "--all"),
        ("git", *who, "commit", "--quiet", "--message=A copy for tests"),
    )
    for command in commit:
        checkout.run(*command)
    return checkout
