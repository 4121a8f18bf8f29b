"""Listings: what is quoted is what the sources say, and a moved line is an error."""

import re
from pathlib import Path

import pytest

from graphgain.errors import SiteError
from graphgain.site.listings import LONGEST, Listing, excerpt, listing_text, read_listings
from notebook_source import ROOT

DECLARED = read_listings(ROOT / "report" / "listings.yml")
SOURCE = """int before;

  void one() {
    work();
  }

  void two() {
  }
"""


@pytest.fixture
def listing(tmp_path: Path) -> Listing:
    (tmp_path / "a.cu").write_text(SOURCE, encoding="utf-8")
    return Listing("one", Path("a.cu"), "  void one() {", "  }")


def test_from_the_first_line_to_the_next_last_one(listing: Listing, tmp_path: Path) -> None:
    assert excerpt(listing, tmp_path) == "void one() {\n  work();\n}\n"


def test_the_listing_is_fenced_and_names_its_file(listing: Listing, tmp_path: Path) -> None:
    text = listing_text(listing, tmp_path)
    assert text.startswith("```cpp\nvoid one() {\n")
    assert "\n}\n```\n" in text
    assert "from `a.cu`" in text


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (SOURCE.replace("void one()", "void uno()"), "is in a.cu 0 times, not once"),
        (SOURCE + SOURCE, "is in a.cu 2 times, not once"),
        (SOURCE.replace("  }\n", "  };\n"), "does not follow in a.cu within 30 lines from line 3"),
        (SOURCE.replace("work();\n", "work();\n" * LONGEST), "adjust its last line"),
    ],
)
def test_a_moved_line_is_an_error(listing: Listing, tmp_path: Path, source: str, what: str) -> None:
    (tmp_path / "a.cu").write_text(source, encoding="utf-8")
    with pytest.raises(SiteError, match="listing one") as caught:
        excerpt(listing, tmp_path)
    assert what in str(caught.value)


def test_a_missing_file_is_an_error(listing: Listing, tmp_path: Path) -> None:
    (tmp_path / "a.cu").unlink()
    with pytest.raises(SiteError, match=r"listing one: there is no file a\.cu"):
        excerpt(listing, tmp_path)


@pytest.mark.parametrize(
    ("declared", "what"),
    [
        ("one: {file: a.cu, first: x}", "one needs exactly file, first, last"),
        ("one: a.cu", "one needs exactly file, first, last"),
        ("one: {file: a.txt, first: x, last: y}", "ends in .cu, .hpp, .py"),
    ],
)
def test_a_wrong_declaration_is_an_error(tmp_path: Path, declared: str, what: str) -> None:
    path = tmp_path / "listings.yml"
    path.write_text(declared, encoding="utf-8")
    with pytest.raises(SiteError) as caught:
        read_listings(path)
    assert what in str(caught.value) and str(path) in str(caught.value)


def test_without_a_declaration_there_are_none(tmp_path: Path) -> None:
    assert read_listings(tmp_path / "listings.yml") == []


@pytest.mark.parametrize("declared", DECLARED, ids=lambda one: one.name)
def test_each_declared_listing_is_short_and_a_whole(declared: Listing) -> None:
    code = excerpt(declared, ROOT)
    assert 3 <= len(code.splitlines()) <= 25
    assert max(map(len, code.splitlines())) <= 100
    assert code.count("{") == code.count("}") and code.count("(") == code.count(")")


def test_each_declared_listing_is_shown_once() -> None:
    sections = (ROOT / "report" / "sections").glob("*.md")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sections)
    shown = re.findall(r"^\{\{< include _includes/listings/(\w+)\.md >\}\}$", text, re.MULTILINE)
    assert sorted(shown) == sorted(listing.name for listing in DECLARED)
