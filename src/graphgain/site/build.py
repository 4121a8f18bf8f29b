"""Building the site: stage the sources, check them, render them, check what was rendered."""

from collections.abc import Sequence
from pathlib import Path

from graphgain.config import Config
from graphgain.errors import SiteError
from graphgain.notebooks import list_notebooks
from graphgain.site.render import render
from graphgain.site.stage import Origin, stage


def build_site(config: Config, machines: Sequence[str], build: Path, out: Path, commit: str) -> str:
    """Build the site of the checkout in the current folder at `out`; returns the renderer's name.

    The site that stood there is replaced only when the new one is complete and consistent.
    Raises SiteError.
    """
    if not (build / "figures").is_dir():
        raise SiteError(
            f"{build} holds no figures: nothing has executed the notebooks yet. Run `make report`, "
            "which does it first."
        )
    staged = build / "site"
    stage(
        report=Path("report"),
        build=build,
        results=Path("results"),
        notebooks=list_notebooks(Path("notebooks")),
        machines=machines,
        origin=Origin(commit, config.site.repository),
        overrides=config.experiments,
        out=staged,
    )
    return render(staged, out, config.site.renderer, Path("report"))
