"""The pages that pandoc and the filter make, the choice of renderer, and the swap."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import pypandoc
import pytest
from bs4 import BeautifulSoup

from graphgain.errors import SiteError
from graphgain.site.render import choose_engine, render
from graphgain.site.swap import replacing
from site_stage import stage_fixture


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixture as pandoc renders it."""
    folder = tmp_path_factory.mktemp("rendered")
    render(stage_fixture(folder / "stage"), folder / "site", "pandoc")
    return folder / "site"


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    return stage_fixture(tmp_path / "stage")


def page(site: Path, name: str = "index.html") -> BeautifulSoup:
    return BeautifulSoup((site / name).read_text(encoding="utf-8"), "html.parser")


def words(tag: object) -> str:
    return " ".join(tag.get_text().split())  # type: ignore[attr-defined]


# Structure ---------------------------------------------------------------------------------------


def test_figures_are_numbered_in_order_of_appearance(site: Path) -> None:
    figures = page(site).select("figure.fig")
    assert [(f["id"], words(f.select_one(".label"))) for f in figures] == [
        ("fig-decode", "Figure 1."),
        ("fig-ttft", "Figure 2."),
    ]
    assert "839 kernels" in words(figures[0].figcaption)
    # Another page counts from one again.
    assert words(page(site, "machines/h200.html").select_one("#fig-ttft .label")) == "Figure 1."


def test_references_link_and_name_their_target(site: Path) -> None:
    links = {a["href"]: words(a) for a in page(site).select("a.reference")}
    assert links == {
        "#fig-decode": "Figure 1",
        "#fig-ttft": "Figure 2",
        "#tbl-gemm": "Table 1",
        "#sec-floor": "The launch floor",
    }


def test_images_have_text_size_and_theme(site: Path) -> None:
    images = page(site).select("#fig-ttft img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"]]
    for image in images:
        assert str(image["alt"]).startswith("Line chart of time to first token")
        assert int(str(image["width"])) > int(str(image["height"])) > 0
        assert image["loading"] == "lazy"
    assert "loading" not in page(site).select("img")[0].attrs


def test_images_and_links_of_an_include_work_from_any_folder(site: Path) -> None:
    subpage = page(site, "machines/h200.html")
    assert subpage.select("#fig-ttft img")[0]["src"] == "../figures/ttft.light.svg"
    hrefs = [a["href"] for a in subpage.select(".provenance a")]
    assert hrefs == [
        "../tables/ttft.csv",
        "../results/gb300-published/ttft.json",
        "../notebooks/ttft.html",
    ]


def test_table_has_its_caption_first_and_scrolls_in_its_own_box(site: Path) -> None:
    figure = page(site).select_one("#tbl-gemm")
    assert figure is not None
    caption, box = figure.find_all(recursive=False)
    assert words(caption).startswith("Table 1. Host time of one call")
    assert (box["role"], box["tabindex"]) == ("region", "0")
    assert str(box["aria-label"]).split() == ["Table", "1"]
    assert len(box.select("tbody tr")) == 7
    assert not figure.select("col")


def test_loose_table_scrolls_too_and_is_named_by_its_section(site: Path) -> None:
    box = page(site, "machines/h200.html").select_one(".scroll")
    assert box is not None
    assert box["aria-label"] == "Table in: What it is"
    assert box.table


def test_callouts(site: Path) -> None:
    callouts = page(site).select(".callout")
    assert [(c["class"][1], words(c.select_one(".callout-title"))) for c in callouts] == [
        ("callout-note", "In short"),
        ("callout-important", "Important"),
        ("callout-warning", "Two numbers that disagree"),
        ("callout-tip", "Tip"),
        ("callout-caution", "Commands used"),
    ]
    assert callouts[-1].name == "details"
    assert callouts[2].select_one(".callout-body .scroll table")


def test_code_is_highlighted_and_reachable_by_keyboard(site: Path) -> None:
    for box in page(site).select(".code"):
        assert box["tabindex"] == "0"
        assert box["aria-label"]
    assert page(site).select(".code pre.cpp span.dt")


def test_headings_have_anchors_and_the_contents_do_not_repeat_them(site: Path) -> None:
    index = page(site)
    assert [h.a["href"] for h in index.select("main h2")] == [
        "#sec-floor",
        "#the-decode-step",
        "#time-to-first-token",
    ]
    assert [words(a) for a in index.select(".toc a")] == [
        "The launch floor",
        "What a GEMM call costs",
        "The decode step",
        "Time to first token",
    ]
    assert not page(site, "machines/index.html").select(".toc")


def test_links_to_sources_become_links_to_pages(site: Path) -> None:
    hrefs = {str(a["href"]) for a in page(site).select("main a")}
    assert {"machines/index.html", "machines/h200.html#what-it-is", "method.html"} <= hrefs
    outside = page(site).select_one("main a[href^=https]")
    assert outside is not None
    assert outside["rel"] == ["noopener"]


def test_head_and_byline(site: Path) -> None:
    index = page(site)
    assert words(index.title) == "Does a CUDA graph save launch time?"
    assert words(page(site, "method.html").title) == "Method · graphgain"
    described = index.select_one("meta[name=description]")
    assert described is not None
    assert described["content"] == "A page that uses every construct of the site."
    assert words(index.select_one(".byline")) == "The graphgain authors · November 30, 2026"
    assert index.time["datetime"] == "2026-11-30"


@pytest.mark.parametrize(
    ("name", "current"),
    [
        ("index.html", "Article"),
        ("machines/index.html", "Machines"),
        ("machines/h200.html", "Machines"),
        ("method.html", "Method"),
        ("notebooks/ttft.html", None),
    ],
)
def test_navigation_is_the_projects_and_marks_the_page(
    site: Path, name: str, current: str | None
) -> None:
    links = page(site, name).select(".site-header nav a")
    assert [words(a) for a in links] == ["Article", "Machines", "Results", "Method"]
    marked = [words(a) for a in links if a.get("aria-current") == "page"]
    assert marked == ([current] if current else [])


def test_footer_is_the_projects(site: Path) -> None:
    parts = [words(p) for p in page(site, "machines/h200.html").select("footer p")]
    assert parts == ["Licence: Text CC BY 4.0, code MIT", "Commit: abc1234", "Built with pandoc"]


def test_site_url_gives_canonical_address_and_preview_image(stage: Path, tmp_path: Path) -> None:
    project = stage / "_quarto.yml"
    text = project.read_text().replace("website:", "website:\n  site-url: https://x.org/g/", 1)
    project.write_text(text)
    index = stage / "index.qmd"
    index.write_text(index.read_text().replace("---\n", "---\nimage: figures/a.png\n", 1))
    render(stage, tmp_path / "site", "pandoc")
    head = page(tmp_path / "site").head
    assert head.select_one("link[rel=canonical]")["href"] == "https://x.org/g/index.html"
    image = head.select_one("meta[property='og:image']")["content"]
    assert image == "https://x.org/g/figures/a.png"


# Notebooks ---------------------------------------------------------------------------------------


def test_notebook_page(site: Path) -> None:
    notebook = page(site, "notebooks/ttft.html")
    assert words(notebook.h1) == "Time to first token"
    assert len(notebook.select("h1")) == 1
    download = notebook.select_one("a[download]")
    assert download is not None
    assert download["href"] == "ttft.ipynb"
    assert (site / "notebooks" / "ttft.ipynb").is_file()
    # The data frame, which Jupyter leaves as HTML, is a table like every other.
    assert notebook.select_one(".output .scroll[tabindex] table td")
    assert words(notebook.select_one(".output.stream")) == "two rows"
    # A figure in both themes, and an image taken out of the notebook with its option as text.
    assert [i["class"] for i in notebook.select(".output img[src$=svg]")] == [
        ["only-light"],
        ["only-dark"],
    ]
    image = notebook.select_one(".output img[src$=png]")
    assert image is not None
    assert image["alt"] == "Two bars of decode time."
    assert (site / "notebooks" / str(image["src"])).is_file()
    assert "fig-alt" not in notebook.get_text()


# What is written ---------------------------------------------------------------------------------


def test_only_pages_and_downloads_are_written(site: Path) -> None:
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert {"index.html", "tables/ttft.csv", "results/gb300-published/ttft.json"} <= files
    leaked = [f for f in files if f.endswith((".qmd", ".lua", ".yml", "template.html", ".md"))]
    assert leaked == []


def test_a_rendered_site_replaces_the_old_one_whole(stage: Path, tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "old.html").write_text("old")
    assert render(stage, out, "pandoc") == "pandoc"
    assert (out / "index.html").is_file()
    assert not (out / "old.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "stage"]


def break_sources(stage: Path) -> None:
    (stage / "method.qmd").write_text("---\ntitle: Method\n---\n\n{{< var gone >}}\n")


def break_filter(stage: Path) -> None:
    (stage / "filter.lua").write_text("this is not Lua")


def break_built_site(stage: Path) -> None:
    (stage / "method.qmd").write_text("---\ntitle: Method\n---\n\n[x](index.qmd#gone)\n")


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (break_sources, "method.qmd:5: unknown fact 'gone'"),
        (break_filter, "pandoc could not render"),
        (break_built_site, "method.html: the link index.html#gone names an anchor"),
    ],
)
def test_a_failed_build_leaves_the_old_site(
    stage: Path, tmp_path: Path, damage: object, what: str
) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "old.html").write_text("old")
    damage(stage)  # type: ignore[operator]
    with pytest.raises(SiteError) as caught:
        render(stage, out, "pandoc")
    assert what in str(caught.value)
    assert [path.name for path in out.iterdir()] == ["old.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "stage"]


def test_place_that_cannot_be_written_is_one_sentence(stage: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / "site"
    with pytest.raises(SiteError) as caught:
        render(stage, out, "pandoc")
    assert f"the site cannot be written to {out}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_swap_puts_the_old_directory_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "old.html").write_text("old")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if ".new-" in self.name:
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SiteError, match="cannot be replaced"), replacing(out) as fresh:
        (fresh / "index.html").write_text("new")
    assert [path.name for path in out.iterdir()] == ["old.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


# The choice of renderer --------------------------------------------------------------------------


def without_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def fake_quarto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program named quarto, in Python, first on the PATH; `stage` is the folder it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "quarto"
    program.write_text(
        f"#!{sys.executable}\nimport pathlib, sys\nstage = pathlib.Path(sys.argv[2])\n{body}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_pandoc_is_the_fallback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_programs(monkeypatch, tmp_path)
    assert choose_engine("auto") == "pandoc"


def test_missing_quarto_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_programs(monkeypatch, tmp_path)
    with pytest.raises(SiteError, match="quarto was asked for but is not on the PATH"):
        choose_engine("quarto")


def test_missing_pandoc_is_one_sentence(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> str:
        raise OSError("No pandoc was found")

    monkeypatch.setattr(pypandoc, "get_pandoc_path", absent)
    with pytest.raises(SiteError, match="pip install pypandoc_binary"):
        render(stage, tmp_path / "site", "pandoc")
    assert not (tmp_path / "site").exists()


QUARTO_PAGES = """
assert "{{<" not in (stage / "index.qmd").read_text() + (stage / "_quarto.yml").read_text()
for source in [*stage.glob("**/*.qmd"), *stage.glob("**/*.ipynb")]:
    page = stage / "_site" / source.relative_to(stage).with_suffix(".html")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text('<header id="title-block-header"><h1>x</h1></header><p>by quarto</p>')
"""


def test_quarto_is_preferred_and_gets_the_same_expanded_text(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_quarto(tmp_path, monkeypatch, QUARTO_PAGES)
    assert render(stage, tmp_path / "site") == "quarto"
    site = tmp_path / "site"
    assert "by quarto" in (site / "index.html").read_text()
    download = page(site, "notebooks/ttft.html").select_one("header + p a[download]")
    assert download is not None
    assert json.loads((site / "notebooks" / str(download["href"])).read_text())["cells"]
    assert not (stage / "_site").exists()


def test_quartos_failure_is_shown(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_quarto(tmp_path, monkeypatch, 'sys.exit("ERROR: bad YAML in _quarto.yml")')
    with pytest.raises(SiteError, match="quarto could not render the site:\nERROR: bad YAML"):
        render(stage, tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.skipif(
    shutil.which("quarto") is None,
    reason="quarto is not installed (conda-forge has it: environment.yml)",
)
def test_real_quarto_builds_the_same_pages_and_links(site: Path, tmp_path: Path) -> None:
    stage = stage_fixture(tmp_path / "stage")
    assert render(stage, tmp_path / "site", "quarto") == "quarto"
    by_quarto = tmp_path / "site"
    names = sorted(p.relative_to(site) for p in site.rglob("*.html"))
    assert names == sorted(p.relative_to(by_quarto) for p in by_quarto.rglob("*.html"))
    for name in ("fig-decode", "fig-ttft", "tbl-gemm", "sec-floor"):
        assert page(by_quarto).find(id=name) is not None
    for name in ("tables/gemm.csv", "results/gb300-published/ttft.json", "notebooks/ttft.ipynb"):
        assert (by_quarto / name).is_file()


def test_when_no_rename_works_the_old_site_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / "index.html").write_text("old")
    rename = Path.rename

    def only_away(self: Path, target: Path) -> Path:
        if self == out:
            return rename(self, target)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", only_away)
    with pytest.raises(SiteError, match="cannot be replaced"), replacing(out):
        pass
    kept = [path for path in tmp_path.rglob("index.html")]
    assert [path.read_text() for path in kept] == ["old"]
