"""What the check of the sources finds, and where it says that it is."""

from pathlib import Path, PurePosixPath

import pytest

from graphgain.errors import SiteError
from graphgain.site.check import check_sources
from graphgain.site.sources import expand_page, read_variables, resolve
from site_stage import stage_fixture

PAGE = """---
title: A page
---

Text.
"""


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A stage with one short page and one fact."""
    (tmp_path / "_variables.yml").write_text("floor:\n  gb300:\n    driver_us: '1.252'\n")
    (tmp_path / "index.qmd").write_text(PAGE)
    (tmp_path / "_includes").mkdir()
    return tmp_path


def complaint(stage: Path, sources: Path | None = None) -> str:
    with pytest.raises(SiteError) as caught:
        check_sources(stage, sources)
    return str(caught.value)


def test_fixture_is_clean(tmp_path: Path) -> None:
    check_sources(stage_fixture(tmp_path / "stage"))


def test_missing_fact_names_file_line_and_the_nearest_name(stage: Path) -> None:
    (stage / "index.qmd").write_text(PAGE + "It is {{< var floor.gb300.drver_us >}} µs.\n")
    where = stage / "index.qmd"
    assert complaint(stage) == (
        f"{where}:6: unknown fact 'floor.gb300.drver_us' (did you mean 'floor.gb300.driver_us'?)"
    )


def test_fact_without_a_similar_name_gets_no_hint(stage: Path) -> None:
    (stage / "index.qmd").write_text(PAGE + "{{< var zebra >}}\n")
    assert complaint(stage).endswith("index.qmd:6: unknown fact 'zebra'")


def test_the_path_reported_is_the_one_the_author_edits(stage: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.mkdir()
    (report / "index.qmd").write_text(PAGE)
    (stage / "index.qmd").write_text(PAGE + "{{< var zebra >}}\n")
    assert complaint(stage, report).startswith(f"{report / 'index.qmd'}:6: ")


def test_problem_in_an_included_file_is_reported_there(stage: Path) -> None:
    (stage / "_includes" / "part.md").write_text("One.\n\nTwo {{< var gone >}}.\n")
    (stage / "index.qmd").write_text(PAGE + "\n{{< include _includes/part.md >}}\n")
    assert complaint(stage).endswith("_includes/part.md:3: unknown fact 'gone'")


def test_missing_include(stage: Path) -> None:
    (stage / "index.qmd").write_text(PAGE + "{{< include /_includes/none.md >}}\n")
    assert "index.qmd:6: the included file _includes/none.md does not exist" in complaint(stage)


def test_include_of_itself(stage: Path) -> None:
    (stage / "_includes" / "a.md").write_text("{{< include /_includes/b.md >}}\n")
    (stage / "_includes" / "b.md").write_text("{{< include /_includes/a.md >}}\n")
    (stage / "index.qmd").write_text(PAGE + "{{< include /_includes/a.md >}}\n")
    assert "_includes/b.md:1: _includes/a.md includes itself" in complaint(stage)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("See {{< include a.md >}}.", "an include stands alone on its line"),
        ("{{< embed x.ipynb >}}", "unknown shortcode 'embed'"),
        ("{{< var floor.gb300.driver_us", "not closed by '>}}'"),
        ("See @fig-none.", "the reference '@fig-none' has no figure"),
        ("See [@tbl-none].", "the reference '@tbl-none' has no figure"),
        ("::: {#fig-a}\n:::\n\n::: {#fig-a}\n:::", "the label 'fig-a' is already used at index"),
        ("[x](gone.qmd)", "the link gone.qmd leads to no file"),
        ("[x\ny](../index.qmd)", "the link ../index.qmd leads to no file"),
        ("![](index.qmd)", "the image index.qmd has no alternative text"),
        ('![](index.qmd){.only-light fig-alt=" "}', "the image index.qmd has no alternative text"),
        ("![words](gone.svg)", "the link gone.svg leads to no file"),
    ],
)
def test_each_problem_is_found(stage: Path, line: str, what: str) -> None:
    (stage / "index.qmd").write_text(PAGE + line + "\n")
    assert what in complaint(stage)


@pytest.mark.parametrize(
    "line",
    [
        "`@fig-none` and `[x](gone.qmd)`",
        "``` python\n[x](gone.qmd) @fig-none\n```",
        "<!-- @fig-none -->",
        "me@fig-none.example",
        "## Part {#sec-part}\n\n@sec-part, [x](#sec-part), [y](https://example.org/@fig-none)",
        "[x](index.qmd#part) and [[y]](index.qmd)",
        '![](index.qmd){fig-alt="words"}',
    ],
)
def test_what_is_no_problem(stage: Path, line: str) -> None:
    (stage / "index.qmd").write_text(PAGE + line + "\n")
    check_sources(stage)


def test_all_problems_are_listed_in_order(stage: Path) -> None:
    (stage / "index.qmd").write_text(PAGE + "{{< var b >}}\n\n@fig-x\n\n{{< var a >}}\n")
    numbers = [line.split(":")[1] for line in complaint(stage).splitlines()]
    assert numbers == ["6", "8", "10"]


def test_page_without_title(stage: Path) -> None:
    (stage / "index.qmd").write_text("Text.\n")
    assert complaint(stage).endswith("index.qmd:1: the page has no title in its front matter")


def test_broken_front_matter_names_the_line(stage: Path) -> None:
    (stage / "index.qmd").write_text("---\ntitle: a\nb: [\n---\n")
    assert complaint(stage).startswith(f"{stage / 'index.qmd'}:3: this is not valid YAML")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [1]", "'a' is [1], not a text or a number"),
        ("a:\n  b: true", "'a.b' is True"),
        ('a: "x\\ny"', "'a' has more than one line"),
        ("- a", "expected `key: value` lines"),
        ("a: {", "not valid YAML"),
    ],
)
def test_variables_that_are_not_texts(stage: Path, text: str, what: str) -> None:
    (stage / "_variables.yml").write_text(text)
    with pytest.raises(SiteError) as caught:
        read_variables(stage)
    assert what in str(caught.value)


def test_expansion_fills_code_links_and_attributes_too(stage: Path) -> None:
    (stage / "_includes" / "a.md").write_text("``` text\n{{< var floor.gb300.driver_us >}}\n```\n")
    (stage / "index.qmd").write_text(PAGE + "{{< include _includes/a.md >}}\n[x]({{<var n>}})\n")
    page = expand_page(
        stage, PurePosixPath("index.qmd"), {"floor.gb300.driver_us": "1.252", "n": "a.csv"}
    )
    assert page.problems == []
    assert page.text.endswith("``` text\n1.252\n```\n[x](a.csv)\n")
    assert (str(page.lines[6].file), page.lines[6].number) == ("_includes/a.md", 2)


@pytest.mark.parametrize(
    ("target", "page", "expected"),
    [
        ("a.qmd", "index.qmd", "a.qmd"),
        ("/a.qmd", "machines/x.qmd", "a.qmd"),
        ("../a.qmd", "machines/x.qmd", "a.qmd"),
        ("./y.qmd", "machines/x.qmd", "machines/y.qmd"),
        ("../a.qmd", "index.qmd", None),
    ],
)
def test_paths_are_resolved_within_the_site(target: str, page: str, expected: str | None) -> None:
    found = resolve(target, PurePosixPath(page))
    assert found == (None if expected is None else PurePosixPath(expected))
