"""The website from its staged sources, by Quarto where it is installed and by pandoc elsewhere.

Both read the same tree (graphgain.site.stage lays it out), with the same expansion of shortcodes,
and leave the same pages and downloads: `X.qmd` and `X.ipynb` become `X.html`, and everything else
that is not a source is copied.
"""

import html
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Literal

import pypandoc

from graphgain.errors import SiteError
from graphgain.site.check import check_site, check_sources
from graphgain.site.sources import (
    Page,
    expand_page,
    fill_variables,
    page_paths,
    read_variables,
    read_yaml,
)
from graphgain.site.swap import replacing

Engine = Literal["auto", "quarto", "pandoc"]

READER = "markdown-implicit_figures"
RENDERER_FILES = frozenset({"template.html", "filter.lua"})
NOT_SERVED = frozenset({".qmd", ".scss"})
PAGES_AT_ONCE = 2
NOTEBOOK_TITLE_END = "</header>"


def render(
    stage: Path, out: Path, engine: Engine = "auto", sources: Path | None = None
) -> Literal["quarto", "pandoc"]:
    """Build the website staged in `stage` into `out`, and return the renderer used.

    `auto` takes Quarto where it is on the PATH. Sources are checked before (`sources` as in
    `check_sources`) and pages afterwards; `out` is replaced only by a complete, checked site.
    Raises SiteError.
    """
    chosen = choose_engine(engine)
    check_sources(stage, sources)
    with replacing(out) as fresh:
        if chosen == "quarto":
            _render_with_quarto(stage, fresh)
        else:
            _render_with_pandoc(stage, fresh)
        check_site(fresh)
    return chosen


def choose_engine(engine: Engine) -> Literal["quarto", "pandoc"]:
    """The renderer that `engine` means on this machine. Raises SiteError for one not installed."""
    if engine != "pandoc" and shutil.which("quarto"):
        return "quarto"
    if engine == "quarto":
        raise SiteError(
            "quarto was asked for but is not on the PATH: install it (environment.yml has it) "
            "or set the site's engine to 'pandoc', which needs nothing more."
        )
    return "pandoc"


# pandoc ------------------------------------------------------------------------------------------


def _pandoc() -> str:
    try:
        return str(pypandoc.get_pandoc_path())
    except OSError as error:
        raise SiteError("pandoc was not found: `pip install pypandoc_binary` brings it.") from error


def _render_with_pandoc(stage: Path, site: Path) -> None:
    pandoc = _pandoc()
    website = _website(stage)
    variables = read_variables(stage)
    footer = {"page-footer": _footer(website, variables)}
    _copy_files(stage, site)

    with (
        TemporaryDirectory(prefix="graphgain-") as folder,
        ThreadPoolExecutor(PAGES_AT_ONCE) as pool,
    ):
        footer_file = Path(folder) / "footer.json"
        footer_file.write_text(json.dumps(footer), encoding="utf-8")

        def render_page(path: PurePosixPath) -> None:
            is_notebook = path.suffix == ".ipynb"
            page = Page(path) if is_notebook else expand_page(stage, path, variables)
            settings = _settings(stage.resolve(), page, website)
            settings["metadata-files"] = [str(footer_file)]
            defaults = Path(folder) / f"{'-'.join(path.parts)}.yaml"  # JSON is YAML
            defaults.write_text(json.dumps(settings), encoding="utf-8")
            _run_pandoc(pandoc, defaults, None if is_notebook else page.text, site / path)

        list(pool.map(render_page, page_paths(stage)))


def _run_pandoc(pandoc: str, defaults: Path, source: str | None, path: Path) -> None:
    # pandoc runs where the page will be, so that paths in it mean what they will mean there.
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [pandoc, "--defaults", str(defaults), "--output", path.with_suffix(".html").name],
        input=source,
        cwd=path.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise SiteError(f"pandoc could not render {path.name}:\n{done.stderr.strip()}")


def _settings(stage: Path, page: Page, website: Mapping[str, object]) -> dict[str, object]:
    """Pandoc's defaults file for one page."""
    path = page.path
    root = "../" * (len(path.parts) - 1)
    settings: dict[str, object] = {
        "from": READER,
        "to": "html5",
        "template": str(stage / "template.html"),
        "filters": [str(stage / "filter.lua")],
        "table-of-contents": True,
        "toc-depth": 3,
        "html-math-method": {"method": "mathml"},
        "email-obfuscation": "none",
        "wrap": "none",
        "fail-if-warnings": True,
        "metadata": {"root": root},
        "variables": _template_variables(page, website, root),
    }
    if path.suffix == ".ipynb":
        settings |= {
            "from": "ipynb",
            "input-files": [str(stage / path)],
            "extract-media": f"{path.stem}_files",
        }
    return settings


def _template_variables(page: Page, website: Mapping[str, object], root: str) -> dict[str, object]:
    path = page.path
    variables: dict[str, object] = {
        "root": root,
        "site-title": _text(website.get("title", "")),
        "navbar": _navbar(website, path, root),
    }
    if path == PurePosixPath("index.qmd"):
        variables["is-home"] = True
    if path.suffix == ".ipynb":
        variables["notebook-file"] = _text(path.name)
    if "site-url" in website:
        url = str(website["site-url"]).rstrip("/")
        variables["canonical"] = _text(f"{url}/{path.with_suffix('.html')}")
        if image := page.front_matter().get("image"):
            variables["og-image"] = _text(f"{url}/{path.parent / str(image)}")
    return variables


def _text(value: object) -> str:
    return html.escape(str(value))


def _website(stage: Path) -> Mapping[str, object]:
    website = read_yaml(stage / "_quarto.yml").get("website")
    if not isinstance(website, dict):
        raise SiteError(f"{stage / '_quarto.yml'}: there is no `website:` section")
    return website


def _navbar(website: Mapping[str, object], page: PurePosixPath, root: str) -> list[object]:
    """`website.navbar.left` for the template; a folder's index is current on all its pages."""
    navbar = website.get("navbar")
    items = navbar.get("left", []) if isinstance(navbar, dict) else []
    shown: list[object] = []
    for item in items:
        if not isinstance(item, dict) or not {"text", "href"} <= item.keys():
            raise SiteError(
                f"_quarto.yml: website.navbar.left: each item needs `text` and `href`, not {item!r}"
            )
        target = PurePosixPath(str(item["href"]))
        in_section = target.name == "index.qmd" and len(target.parts) > 1
        current = target == page or (in_section and target.parent in page.parents)
        href = target.with_suffix(".html") if target.suffix in {".qmd", ".ipynb"} else target
        entry = {"text": _text(item["text"]), "href": _text(f"{root}{href}")}
        shown.append(entry | ({"current": True} if current else {}))
    return shown


def _footer(website: Mapping[str, object], variables: Mapping[str, str]) -> dict[str, str]:
    """The footer's left and right, Markdown. Its centre names the renderer and differs."""
    footer = website.get("page-footer")
    parts = footer if isinstance(footer, dict) else {}
    return {
        side: fill_variables(str(parts[side]), variables, f"_quarto.yml: page-footer.{side}")
        for side in ("left", "right")
        if side in parts
    }


def _copy_files(stage: Path, site: Path) -> None:
    """Copy what is served as it is: figures, tables, results, styles, and the notebooks."""
    for folder, subfolders, names in os.walk(stage):
        here = Path(folder).relative_to(stage)
        subfolders[:] = [name for name in subfolders if name[0] not in "_."]
        for name in names:
            is_source = name[0] in "_." or Path(name).suffix in NOT_SERVED
            if not is_source and not (here == Path() and name in RENDERER_FILES):
                (site / here).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(stage / here / name, site / here / name)


# Quarto ------------------------------------------------------------------------------------------


def _render_with_quarto(stage: Path, site: Path) -> None:
    """Let Quarto render a copy, expanded; it also writes its own files among the sources."""
    variables = read_variables(stage)
    with TemporaryDirectory(prefix="graphgain-") as folder:
        copy = Path(folder) / "site"
        shutil.copytree(stage, copy)
        for path in page_paths(stage):
            if path.suffix == ".qmd":
                page = expand_page(stage, path, variables)
                (copy / path).write_text(page.text, encoding="utf-8")
        project = (stage / "_quarto.yml").read_text(encoding="utf-8")
        project = fill_variables(project, variables, "_quarto.yml")
        (copy / "_quarto.yml").write_text(project, encoding="utf-8")
        done = subprocess.run(
            ["quarto", "render", str(copy), "--no-execute"],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        built = copy / "_site"
        if done.returncode != 0 or not built.is_dir():
            tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-20:])
            raise SiteError(f"quarto could not render the site:\n{tail}")
        shutil.copytree(built, site, dirs_exist_ok=True)
    for path in page_paths(stage):
        if path.suffix == ".ipynb":
            _offer_notebook(stage / path, site / path)


def _offer_notebook(notebook: Path, target: Path) -> None:
    """Put the notebook beside its page and link it below the title.

    Done after Quarto, which turns every link to a notebook into one to the notebook's page.
    """
    shutil.copyfile(notebook, target)
    page = target.with_suffix(".html")
    text = page.read_text(encoding="utf-8")
    head, end, rest = text.partition('id="title-block-header"')
    name = _text(target.name)
    link = f'<p><a href="{name}" download>Download this notebook (.ipynb)</a></p>'
    if not end or NOTEBOOK_TITLE_END not in rest:
        raise SiteError(f"quarto's page {page.name} has no title block to put the download into")
    rest = rest.replace(NOTEBOOK_TITLE_END, f"{NOTEBOOK_TITLE_END}\n{link}", 1)
    page.write_text(f"{head}{end}{rest}", encoding="utf-8")
