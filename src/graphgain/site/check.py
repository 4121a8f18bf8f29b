"""Checks of the site: its sources before a renderer sees them, and its pages afterwards.

Both renderers show an unknown variable or reference as a curiosity in the text and go on. Here
each is an error that names its file and line, and all are listed at once.
"""

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from graphgain.errors import SiteError
from graphgain.site.sources import (
    Line,
    Page,
    Problem,
    expand_page,
    page_paths,
    read_variables,
    resolve,
)

FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})")
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
IDENTIFIER = re.compile(r"\{[^{}\n]*?#(?P<id>(?:fig|tbl|sec)-[\w-]+)[^{}]*\}")
REFERENCE = re.compile(r"(?<![\w/.])@(?P<id>(?:fig|tbl|sec)-[\w-]*\w)")
IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)[^)]*\)(?P<attributes>\{[^{}]*\})?")
LINK = re.compile(r"(?<!!)\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]\((?P<target>[^)\s]+)[^)]*\)")
ALT_ATTRIBUTE = re.compile(r"""fig-alt\s*=\s*(?:"[^"]*\S[^"]*"|'[^']*\S[^']*')""")
SCHEME = re.compile(r"[A-Za-z][\w+.-]*:|//")


def check_sources(stage: Path, sources: Path | None = None) -> None:
    """Check every page in `stage`: facts, includes, references, links, alternative texts.

    `sources` is the folder that the stage was copied from: a file that is there is reported by
    that path, so that the message names what the author edits. Raises SiteError listing every
    problem as `file:line: what`.
    """
    variables = read_variables(stage)
    problems: list[Problem] = []
    for path in page_paths(stage):
        if path.suffix == ".qmd":
            page = expand_page(stage, path, variables)
            problems += page.problems
            if not page.front_matter(str(_shown(path, stage, sources))).get("title"):
                problems.append(Problem(path, 1, "the page has no title in its front matter"))
            problems += page_problems(page, stage)
    if problems:
        ordered = sorted(dict.fromkeys(problems), key=lambda p: (str(p.file), p.number))
        listing = [f"{_shown(p.file, stage, sources)}:{p.number}: {p.what}" for p in ordered]
        raise SiteError("\n".join(listing))


def _shown(file: PurePosixPath, stage: Path, sources: Path | None) -> Path:
    if sources is not None and (sources / file).is_file():
        return sources / file
    return stage / file


def page_problems(page: Page, stage: Path) -> Iterator[Problem]:
    """Problems in the text of one expanded page, other than its shortcodes."""
    prose = _Prose(page.lines)
    defined: dict[str, Line] = {}
    for name, line in prose.find(IDENTIFIER, "id"):
        if name in defined:
            first = defined[name]
            what = f"the label {name!r} is already used at {first.file}:{first.number}"
            yield Problem(line.file, line.number, what)
        defined.setdefault(name, line)
    for name, line in prose.find(REFERENCE, "id"):
        if name not in defined:
            what = f"the reference '@{name}' has no figure, table or section on this page"
            yield Problem(line.file, line.number, what)
    for match, line in prose.matches(IMAGE):
        if not match["text"].strip() and not ALT_ATTRIBUTE.search(match["attributes"] or ""):
            what = f"the image {match['target']} has no alternative text (fig-alt)"
            yield Problem(line.file, line.number, what)
    for pattern in (IMAGE, LINK):
        for target, line in prose.find(pattern, "target"):
            if broken := _broken_link(target.strip("<>"), page.path, stage):
                yield Problem(line.file, line.number, broken)


def _broken_link(target: str, page: PurePosixPath, stage: Path) -> str | None:
    if SCHEME.match(target) or target.startswith("#") or "{{<" in target:
        return None
    path = resolve(unquote(urlsplit(target).path), page)
    if path is None or not (stage / path).exists():
        return f"the link {target} leads to no file of the site"
    return None


class _Prose:
    """The text of a page with code and comments blanked out, and a way back from it to lines."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        text = "\n".join(_without_code_blocks(lines))
        for pattern in (COMMENT, INLINE_CODE):
            text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def matches(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Line]]:
        for match in pattern.finditer(self._text):
            yield match, self._lines[bisect.bisect_right(self._starts, match.start()) - 1]

    def find(self, pattern: re.Pattern[str], group: str) -> Iterator[tuple[str, Line]]:
        for match, line in self.matches(pattern):
            yield match[group], line


def _without_code_blocks(lines: Iterable[Line]) -> Iterator[str]:
    fence = ""
    for line in lines:
        match = FENCE.match(line.text)
        if fence:
            if line.text.strip().startswith(fence) and not line.text.strip().strip(fence[0]):
                fence = ""
            yield ""
        elif match:
            fence = str(match["fence"])
            yield ""
        else:
            yield line.text


@dataclass(frozen=True)
class _BuiltPage:
    """What the check needs of a page: ids in order, links as written, images without text."""

    ids: list[str]
    links: list[str]
    silent_images: list[str]
    leftovers: bool


def check_site(site: Path) -> None:
    """Check every built page under `site`, whichever renderer made it.

    Every internal link and image leads to a file, and its fragment to an id; each image has an
    alternative text; no shortcode is left; ids are unique; no link begins with `/`, which would
    not work from `file://`. Raises SiteError listing every problem.
    """
    pages = {path: _read_page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        raise SiteError(f"{site} has no pages")
    problems: list[str] = []
    for path, page in pages.items():
        where = path.relative_to(site)
        if page.leftovers:
            problems.append(f"{where}: a shortcode '{{{{<' is left in the text")
        for name in sorted({name for name in page.ids if page.ids.count(name) > 1}):
            problems.append(f"{where}: the id {name!r} is used more than once")
        for source in page.silent_images:
            problems.append(f"{where}: the image {source[:80]} has no alternative text")
        for link in dict.fromkeys(page.links):
            if what := _broken_target(link, path, site, pages):
                problems.append(f"{where}: {what}")
    if problems:
        raise SiteError("\n".join(problems))


def _read_page(path: Path) -> _BuiltPage:
    text = path.read_text(encoding="utf-8")
    ids: list[str] = []
    links: list[str] = []
    silent: list[str] = []
    soup = BeautifulSoup(text, "html.parser")
    for tag in soup.find_all(True):
        if "id" in tag.attrs:
            ids.append(str(tag["id"]))
        links += [str(tag[name]) for name in ("href", "src") if name in tag.attrs]
        if tag.name == "img" and not str(tag.get("alt", "")).strip():
            silent.append(str(tag.get("src", "")))
    # In the source of the page, code in braces may end before a tag: `{{</span>` is no shortcode.
    return _BuiltPage(ids, links, silent, "{{<" in soup.get_text() or "{{&lt;" in text)


def _broken_target(link: str, page: Path, site: Path, pages: dict[Path, _BuiltPage]) -> str | None:
    if SCHEME.match(link) or link == "":
        return None
    parts = urlsplit(link)
    if parts.path.startswith("/"):
        return f"the link {link} begins with '/', which fails when the site is opened as a file"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site.resolve()) or not target.is_file():
        return f"the link {link} leads nowhere"
    known = pages.get(site / target.relative_to(site.resolve()))
    if parts.fragment and known and unquote(parts.fragment) not in known.ids:
        return f"the link {link} names an anchor that does not exist"
    return None
