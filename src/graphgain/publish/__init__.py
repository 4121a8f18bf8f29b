"""Putting the built site where its readers find it: on a branch of a git remote, or in a folder."""

from pathlib import Path

from graphgain.config import CONFIG, PublishConfig
from graphgain.errors import PublishError
from graphgain.publish.branch import publish_to_branch
from graphgain.publish.folder import publish_to_folder


def publish(site: Path, config: PublishConfig) -> str:
    """Publish a built site as configured; returns a sentence that says what was done.

    Publishing the same site again changes nothing. Raises PublishError where the site cannot be
    published; the destination is then as it was.
    """
    if not (site / "index.html").is_file():
        raise PublishError(f"{site}/index.html does not exist; build the site with `make report`.")
    if config.to is None:
        raise PublishError(
            f"{CONFIG} does not say where to publish: set publish.to to `branch` (of a git "
            "remote) or to `folder`."
        )
    if config.to == "branch":
        return publish_to_branch(site, config.remote, config.branch, config.cname)
    if config.folder is None:
        raise PublishError(f"{CONFIG}: publish.to is `folder`, so set publish.folder too.")
    return publish_to_folder(site, config.folder)
