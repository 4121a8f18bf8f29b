"""The staged sources as text: shortcodes expanded, every line still knowing where it came from.

Only two of Quarto's shortcodes are used, with Quarto's meaning. `{{< include PATH >}}`, alone on
its line, is replaced by the file's text (recursively; PATH starts at the site's root with a
leading `/`, and otherwise in the folder of the page). `{{< var a.b >}}` is replaced by an entry of
`_variables.yml`.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from graphgain.errors import SiteError

SHORTCODE = re.compile(r"\{\{<\s*(?P<kind>[\w-]+)\s*(?P<argument>[^>]*?)\s*>\}\}")
INCLUDE_LINE = re.compile(r"\s*\{\{<\s*include\s+(?P<path>[^>\s]+)\s*>\}\}\s*")


@dataclass(frozen=True)
class Line:
    """One line of text and its origin: `file` relative to the stage, `number` from 1."""

    text: str
    file: PurePosixPath
    number: int


@dataclass(frozen=True)
class Problem:
    """What is wrong, and where in the sources."""

    file: PurePosixPath
    number: int
    what: str


@dataclass
class Page:
    """A page after expansion: `path` relative to the stage, its lines, and what went wrong."""

    path: PurePosixPath
    lines: list[Line] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole page as one Markdown document."""
        return "\n".join(line.text for line in self.lines) + "\n"

    def front_matter(self, shown: str | None = None) -> dict[str, object]:
        """The YAML mapping between the leading `---` lines; empty where there is none.

        Raises SiteError on malformed YAML, naming the file (as `shown`) and the line.
        """
        block = re.match(r"---\n(.*?)\n(?:---|\.\.\.)\n", self.text, re.DOTALL)
        if not block:
            return {}
        return read_mapping(block[1], shown or str(self.path), first_line=2)


def page_paths(stage: Path) -> list[PurePosixPath]:
    """Every source that becomes a page: .qmd and .ipynb, except names beginning with `_` or `.`."""
    found = (
        PurePosixPath(path.relative_to(stage).as_posix())
        for pattern in ("*.qmd", "*.ipynb")
        for path in stage.rglob(pattern)
    )
    return sorted(path for path in found if not any(part[0] in "_." for part in path.parts))


def read_mapping(text: str, name: str, first_line: int = 1) -> dict[str, object]:
    """Parse `text` as a YAML mapping. Raises SiteError naming `name` and the line."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + first_line}" if mark else name
        reason = getattr(error, "problem", None) or str(error)
        raise SiteError(f"{where}: this is not valid YAML: {reason}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SiteError(f"{name}:{first_line}: expected `key: value` lines, found something else")
    return data


def read_yaml(path: Path) -> dict[str, object]:
    """The YAML mapping in the file `path`. Raises SiteError where it is missing or malformed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SiteError(f"{path} cannot be read: {error.strerror}") from error
    return read_mapping(text, str(path))


def read_variables(stage: Path) -> dict[str, str]:
    """`_variables.yml` with nesting written as dots: {"launch_floor.gb300.driver_us": "1.252"}.

    Raises SiteError for a value that is not one line of text or a number.
    """
    path = stage / "_variables.yml"
    return dict(_flatten(read_yaml(path), "", path))


def _flatten(tree: Mapping[str, object], prefix: str, path: Path) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.", path)
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SiteError(f"{path}: the fact {name!r} is {value!r}, not a text or a number")
        elif "\n" in str(value):
            raise SiteError(f"{path}: the fact {name!r} has more than one line")
        else:
            yield name, str(value)


def expand_page(stage: Path, path: PurePosixPath, variables: Mapping[str, str]) -> Page:
    """Read a .qmd page with its includes and variables filled in.

    Nothing is raised for a broken shortcode: it stays in the text and is listed in `problems`.
    """
    page = Page(path)
    for line in _included_lines(stage, path, page, (path,)):
        page.lines.append(Line(_fill(line, variables, page.problems), line.file, line.number))
    return page


def fill_variables(text: str, variables: Mapping[str, str], name: str) -> str:
    """`text` with its variables filled in. Raises SiteError naming `name` for an unknown one."""
    problems: list[Problem] = []
    filled = _fill(Line(text, PurePosixPath(name), 1), variables, problems)
    if problems:
        raise SiteError(f"{name}: {problems[0].what}")
    return filled


def _included_lines(
    stage: Path, file: PurePosixPath, page: Page, chain: tuple[PurePosixPath, ...]
) -> Iterator[Line]:
    text = (stage / file).read_text(encoding="utf-8")
    for number, content in enumerate(text.splitlines(), start=1):
        line = Line(content, file, number)
        include = INCLUDE_LINE.fullmatch(content)
        if not include:
            yield line
            continue
        target = _include_target(include["path"], page.path)
        problem = None
        if target in chain:
            problem = f"{target} includes itself"
        elif not (stage / target).is_file():
            problem = f"the included file {target} does not exist"
        if problem:
            page.problems.append(Problem(file, number, problem))
        else:
            yield from _included_lines(stage, target, page, (*chain, target))


def _include_target(path: str, page: PurePosixPath) -> PurePosixPath:
    return resolve(path, page) or PurePosixPath(path)


def resolve(target: str, page: PurePosixPath) -> PurePosixPath | None:
    """What `target` means on `page`, relative to the stage; None where it leads out of it."""
    parts: list[str] = [] if target.startswith("/") else list(page.parent.parts)
    for part in PurePosixPath(target.lstrip("/")).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            return None
    return PurePosixPath(*parts)


def _fill(line: Line, variables: Mapping[str, str], problems: list[Problem]) -> str:
    def replacement(match: re.Match[str]) -> str:
        kind, argument = match["kind"], match["argument"]
        if kind == "var" and argument in variables:
            return variables[argument]
        problems.append(Problem(line.file, line.number, _explain(kind, argument, variables)))
        return match[0]

    filled = SHORTCODE.sub(replacement, line.text)
    if "{{<" in SHORTCODE.sub("", line.text):
        what = "'{{<' begins a shortcode that is not closed by '>}}' on the same line"
        problems.append(Problem(line.file, line.number, what))
    return filled


def _explain(kind: str, argument: str, variables: Mapping[str, str]) -> str:
    if kind == "include":
        return "an include stands alone on its line and names one file"
    if kind != "var":
        return f"unknown shortcode {kind!r}; this site uses only 'var' and 'include'"
    close = difflib.get_close_matches(argument, variables, n=1, cutoff=0.7)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"unknown fact {argument!r}{hint}"
