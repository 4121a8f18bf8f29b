"""What the check of a built site finds."""

from pathlib import Path

import pytest

from graphgain.errors import SiteError
from graphgain.site.check import check_site


def write(site: Path, name: str, body: str) -> None:
    (site / name).parent.mkdir(parents=True, exist_ok=True)
    (site / name).write_text(f"<!DOCTYPE html><body>{body}</body>")


@pytest.mark.parametrize(
    "body",
    [
        '<a href="b.html#there">x</a><a href="#here">y</a><p id="here"></p>',
        '<a href="sub/">x</a><a href="https://example.org/gone">y</a><a href="mailto:a@b.c">z</a>',
        '<img src="a%20b.svg" alt="words"><img src="data:image/png;base64,AA" alt="dot">',
        '<a href="b.html?q=1#%C3%BC">x</a>',
    ],
)
def test_sound_site(tmp_path: Path, body: str) -> None:
    write(tmp_path, "index.html", body)
    write(tmp_path, "b.html", '<p id="there"></p><p id="ü"></p>')
    write(tmp_path, "sub/index.html", '<a href="../index.html">x</a>')
    (tmp_path / "a b.svg").write_text("<svg/>")
    check_site(tmp_path)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('<a href="gone.html">x</a>', "the link gone.html leads nowhere"),
        ('<a href="../x.html">x</a>', "the link ../x.html leads nowhere"),
        ('<a href="b.html#gone">x</a>', "the link b.html#gone names an anchor that does not exist"),
        ('<a href="#gone">x</a>', "the link #gone names an anchor that does not exist"),
        ('<a href="/b.html">x</a>', "begins with '/'"),
        ('<img src="gone.svg" alt="words">', "the link gone.svg leads nowhere"),
        ('<script src="gone.js"></script>', "the link gone.js leads nowhere"),
        ('<img src="b.html">', "the image b.html has no alternative text"),
        ('<img src="b.html" alt=" ">', "the image b.html has no alternative text"),
        ('<p id="a"></p><p id="a"></p>', "the id 'a' is used more than once"),
        ("<p>{{&lt; var x &gt;}}</p>", "a shortcode '{{<' is left"),
    ],
)
def test_each_problem_is_found(tmp_path: Path, body: str, what: str) -> None:
    write(tmp_path, "index.html", body)
    write(tmp_path, "b.html", "")
    with pytest.raises(SiteError) as caught:
        check_site(tmp_path)
    assert str(caught.value).startswith("index.html: ")
    assert what in str(caught.value)


def test_site_without_pages(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="has no pages"):
        check_site(tmp_path)


def test_braces_in_highlighted_code_are_no_shortcode(tmp_path: Path) -> None:
    write(tmp_path, "index.html", "<pre>return <span>{{</span>axes, <b>{{</b><i>{{</i></pre>")
    check_site(tmp_path)
