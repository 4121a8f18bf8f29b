"""Listings of the article: excerpts of the sources that measure, found by their own lines.

`report/listings.yml` names each: `file`, and the text of its `first` and its `last` line. The
sources carry no marks for this, because a mark would change the hash that tells stale documents.
"""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from graphgain.errors import SiteError

LISTINGS = Path("report/listings.yml")

LANGUAGES = {".cu": "cpp", ".hpp": "cpp", ".py": "python"}
LONGEST = 30  # lines; a listing that reaches further has most likely lost its last line
_KEYS = ("file", "first", "last")


@dataclass(frozen=True)
class Listing:
    """Where an excerpt is; `first` and `last` are whole lines with their indentation."""

    name: str
    file: Path
    first: str
    last: str


def read_listings(path: Path = LISTINGS) -> list[Listing]:
    """The listings that a file declares, none without the file; raises SiteError."""
    if not path.exists():
        return []
    declared = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    for name, row in declared.items():
        if not isinstance(row, Mapping) or set(row) != set(_KEYS):
            raise SiteError(f"{path}: {name} needs exactly {', '.join(_KEYS)}.")
        if Path(row["file"]).suffix not in LANGUAGES:
            raise SiteError(
                f"{path}: {name} is from {row['file']}; "
                f"a listing is from a file that ends in {', '.join(LANGUAGES)}."
            )
    return [
        Listing(name, Path(row["file"]), row["first"], row["last"])
        for name, row in declared.items()
    ]


def excerpt(listing: Listing, root: Path = Path()) -> str:
    """The lines from `first` to the next `last`, without their common indentation.

    Raises SiteError unless `first` is in the file exactly once and `last` within the next
    `LONGEST` lines.
    """
    try:
        lines = (root / listing.file).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise SiteError(f"listing {listing.name}: there is no file {listing.file}.") from None
    if lines.count(listing.first) != 1:
        raise SiteError(
            f"listing {listing.name}: the line {listing.first!r} is in {listing.file} "
            f"{lines.count(listing.first)} times, not once; adjust its first line."
        )
    start = lines.index(listing.first)
    within = lines[start : start + LONGEST]
    if listing.last not in within:
        raise SiteError(
            f"listing {listing.name}: the line {listing.last!r} does not follow in {listing.file} "
            f"within {LONGEST} lines from line {start + 1}; adjust its last line."
        )
    return textwrap.dedent("\n".join(within[: within.index(listing.last) + 1])) + "\n"


def listing_text(listing: Listing, root: Path = Path()) -> str:
    """A listing as Markdown: the fenced code, and the file that it is from below it."""
    return (
        f"```{LANGUAGES[listing.file.suffix]}\n{excerpt(listing, root)}```\n\n"
        f"::: {{.provenance}}\nfrom `{listing.file.as_posix()}`\n:::\n"
    )
