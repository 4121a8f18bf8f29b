"""Publishing on a branch of a git remote, as GitHub Pages and its like serve it.

ghp-import makes the commit in a throwaway repository, which is pushed from there: the checkout's
working tree, index, branches and hooks are not involved, and a failure leaves nothing behind.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

from graphgain.errors import PublishError
from graphgain.publish.content import content
from graphgain.publish.git import (
    Git,
    output,
    quiet_environment,
    reason,
    require,
    run,
    scratch_environment,
)
from graphgain.site.commit import describe_commit

# Tells GitHub Pages to serve the files as they are; a branch that has it is taken for a site.
NO_JEKYLL = ".nojekyll"


def publish_to_branch(site: Path, remote: str, branch: str, cname: str | None = None) -> str:
    """Commit exactly the site's files, `.nojekyll` and an optional CNAME; returns what was done.

    Works in the checkout of the current folder. The remote's branch is created where it is
    missing, and keeps its history. Raises PublishError; the remote is then as it was.
    """
    here = partial(run, "git", cwd=Path.cwd(), environment=quiet_environment())
    root = Path(require(here("rev-parse", "--show-toplevel"), "a branch needs a git checkout"))
    _check_names(here, remote, branch)
    source = describe_commit(root)
    with tempfile.TemporaryDirectory(prefix="graphgain-publish-") as scratch:
        environment = scratch_environment(here, Path(scratch)) | _committer(here)
        git = partial(run, "git", cwd=root, environment=environment)  # relative URLs start at root
        require(git("init", "--bare", "--quiet", "--template="), "git cannot start a repository")
        before = _fetch(git, remote, branch)
        files = {*content(site), NO_JEKYLL, *(["CNAME"] if cname else [])}
        options = ["--no-jekyll", "--remote", remote, "--branch", branch]
        options += ["--message", f"Publish the site of {source}"]
        options += ["--cname", cname] if cname else []
        ghp_import = (sys.executable, "-m", "ghp_import", *options, "--", str(site.resolve()))
        imported = run(*ghp_import, cwd=root, environment=environment)
        committed = output(git("ls-tree", "-r", "-z", "--name-only", f"refs/heads/{branch}"))
        if imported.returncode != 0 or {*committed.split("\0")} - {""} != files:
            raise PublishError(f"ghp-import could not commit {site}: {reason(imported)}.")
        if before and _tree(git, before) == _tree(git, f"refs/heads/{branch}"):
            return f"branch {branch} of {remote} has this site already; nothing was changed."
        _push(git, remote, branch)
    return f"published the site of {source} on branch {branch} of {remote}: {len(files)} files."


def _check_names(here: Git, remote: str, branch: str) -> None:
    if branch.startswith("-") or here("check-ref-format", f"refs/heads/{branch}").returncode != 0:
        raise PublishError(f"publish.branch {branch!r} is not a valid name for a git branch.")
    if output(here("symbolic-ref", "--quiet", "--short", "HEAD")) == branch:
        raise PublishError(
            f"publish.branch {branch} is checked out, so it holds the sources; choose another, "
            "such as gh-pages."
        )
    remotes = output(here("remote")).split()
    if remote not in remotes:
        raise PublishError(
            f"publish.remote {remote!r} is not a remote of this checkout; it has "
            f"{', '.join(remotes) or 'none'}."
        )


def _committer(here: Git) -> dict[str, str]:
    """Who publishes; ghp-import itself looks only at `user.name` and `user.email`."""
    problem = "git does not know who publishes; set its user.name and user.email"
    name, _, rest = require(here("var", "GIT_COMMITTER_IDENT"), problem).partition(" <")
    return {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": rest.partition(">")[0]}


def _fetch(git: Git, remote: str, branch: str) -> str | None:
    """The remote branch's commit, fetched without its history; None where there is no branch."""
    ref, tracking = f"refs/heads/{branch}", f"refs/remotes/{remote}/{branch}"
    listed = git("ls-remote", "--exit-code", remote, ref)
    if listed.returncode == 2:  # the remote answered, and has no such branch
        return None
    require(listed, f"the remote {remote} cannot be read")
    fetched = git(
        "fetch", "--depth=1", "--no-tags", "--no-recurse-submodules", remote, f"+{ref}:{tracking}"
    )
    require(fetched, f"branch {branch} of {remote} cannot be fetched")
    if git("cat-file", "-e", f"{tracking}:{NO_JEKYLL}").returncode != 0:
        raise PublishError(
            f"branch {branch} of {remote} has no {NO_JEKYLL}, so it is not a published site; "
            "delete it there or set publish.branch to another name."
        )
    return output(git("rev-parse", tracking))


def _push(git: Git, remote: str, branch: str) -> None:
    ref = f"refs/heads/{branch}"
    pushed = git(
        "push",
        "--porcelain",
        "--no-verify",
        "--no-follow-tags",
        "--recurse-submodules=no",
        remote,
        f"{ref}:{ref}",
    )
    refused = [line.split("\t")[-1] for line in pushed.stdout.splitlines() if line.startswith("!")]
    if refused:
        said = [line[7:].strip() for line in pushed.stderr.splitlines() if line[:7] == "remote:"]
        why = " ".join([refused[0], *filter(None, said)]).rstrip(".")
        raise PublishError(f"{remote} refused the new commit on branch {branch}: {why}.")
    require(pushed, f"branch {branch} cannot be pushed to {remote}")


def _tree(git: Git, commit: str) -> str:
    return output(git("rev-parse", f"{commit}^{{tree}}"))
