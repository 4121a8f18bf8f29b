"""Facts: the named numbers that the prose uses instead of typing them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from graphgain import text
from graphgain.errors import SiteError
from graphgain.files import write_atomically
from graphgain.results.quantity import Quantity


@dataclass(frozen=True)
class Fact:
    """One number: `text` is what the prose shows, unit included."""

    name: str
    value: float | str
    unit: str
    text: str


def fact(name: str, value: float | Quantity, unit: str = "", digits: int = 0) -> Fact:
    """A fact from a number or a quantity, shown with `digits` decimals and its unit.

    A quantity that is only a range is shown as that range; its value is then the middle.
    """
    if isinstance(value, Quantity):
        return Fact(name, value.value, unit, text.quantity(value, digits, unit))
    return Fact(name, value, unit, text.with_unit(text.number(value, digits), unit))


def words(name: str, value: str) -> Fact:
    """A fact that is a word, such as an engine's name or a date."""
    return Fact(name, value, "", value)


def machine_key(slug: str) -> str:
    """The part of a fact's name that stands for a machine: `gb300-published` → `gb300`."""
    return slug.removesuffix("-published").replace("-", "_").replace(".", "_")


def save_facts(facts: Iterable[Fact], path: Path) -> None:
    """Write facts as a JSON list, in the given order; a name used twice raises SiteError."""
    rows = list(facts)
    names = [row.name for row in rows]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SiteError(f"{path}: the fact {', '.join(repeated)} is defined twice.")
    write_atomically(path, json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False))


def load_facts(paths: Iterable[Path]) -> dict[str, Fact]:
    """All facts of several files by name; the same name in two files raises SiteError."""
    facts: dict[str, Fact] = {}
    for path in paths:
        for row in json.loads(path.read_text(encoding="utf-8")):
            loaded = Fact(**row)
            if loaded.name in facts:
                raise SiteError(
                    f"{path}: the fact {loaded.name} is defined in another notebook too."
                )
            facts[loaded.name] = loaded
    return facts


def nest(facts: Mapping[str, Fact]) -> dict[str, object]:
    """Facts as the nested mapping of texts that a Quarto `_variables.yml` is."""
    tree: dict[str, object] = {}
    for name, row in facts.items():
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            child = node.setdefault(parent, {})
            if not isinstance(child, dict):
                raise SiteError(f"the fact {name} lies below {parent}, which is a fact itself.")
            node = child
        if leaf in node:
            raise SiteError(f"the fact {name} is a group of facts as well.")
        node[leaf] = row.text
    return tree
