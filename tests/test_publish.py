"""Publishing, against a bare repository as the remote and against a folder."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphgain.__main__ import main
from graphgain.config import PublishConfig
from graphgain.errors import PublishError
from graphgain.publish import branch as branch_module
from graphgain.publish import publish
from graphgain.publish.folder import RECORD

BRANCH = PublishConfig(to="branch")
SITE = {
    "index.html": "<title>The article</title>",
    "machines/gb300.html": "<p>µs</p>",
    "figures/name with spaces.svg": "<svg/>",
    ".hidden": "",
}


def git(where: Path, *arguments: str) -> str:
    command = ("git", "-C", str(where), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def read(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


@dataclass(frozen=True)
class Project:
    """A checkout with a built site and a bare remote."""

    root: Path
    site: Path
    remote: Path

    def published(self, branch: str = "gh-pages") -> dict[str, str]:
        """Every file on the remote's branch, with its content."""
        names = git(self.remote, "ls-tree", "-r", "-z", "--name-only", branch).strip("\0")
        return {name: git(self.remote, "show", f"{branch}:{name}") for name in names.split("\0")}

    def commits(self, branch: str = "gh-pages") -> list[str]:
        """The messages on the remote's branch, newest first."""
        return git(self.remote, "log", "--format=%s", branch).splitlines()

    def state(self) -> tuple[str, ...]:
        """What publishing must not change in the checkout."""
        queries = (
            ("for-each-ref",),
            ("symbolic-ref", "HEAD"),
            ("status", "--porcelain", "--ignored"),
            ("ls-files", "--stage"),
            ("config", "--local", "--list"),
            ("count-objects", "-v"),
        )
        inside = sorted(str(path) for path in (self.root / ".git").iterdir())
        return (*(git(self.root, *query) for query in queries), *inside)

    def remote_refs(self) -> str:
        return git(self.remote, "for-each-ref")

    def refuse_pushes(self, reason: str) -> None:
        hook = self.remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho '{reason}'\nexit 1\n")
        hook.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = write(tmp_path / "home", {".gitconfig": "[user]\nname = Ada\nemail = ada@example.org\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    remote, root = tmp_path / "remote.git", tmp_path / "project"
    git(tmp_path, "init", "--quiet", "--bare", str(remote))
    git(tmp_path, "init", "--quiet", "--initial-branch=main", str(root))
    write(root, {"README.md": "sources", ".gitignore": "/report/_site/\n"})
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=Sources")
    git(root, "remote", "add", "origin", str(remote))
    git(root, "push", "--quiet", "origin", "main")
    monkeypatch.chdir(root)
    return Project(root, write(root / "report" / "_site", SITE), remote)


def assert_refused(project: Project, config: PublishConfig, *expected: str) -> None:
    """Publishing fails with one sentence that has these words, and changes nothing anywhere."""
    before = project.state(), project.remote_refs()
    with pytest.raises(PublishError) as caught:
        publish(project.site, config)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for words in expected:
        assert words in message
    assert (project.state(), project.remote_refs()) == before


def test_a_branch_gets_exactly_the_site(project: Project) -> None:
    before = project.state()
    said = publish(project.site, BRANCH)
    assert project.published() == SITE | {".nojekyll": ""}
    commit = git(project.root, "rev-parse", "--short=10", "HEAD")
    assert project.commits() == [f"Publish the site of {commit}"]
    assert commit in said and "gh-pages" in said and "origin" in said
    assert git(project.remote, "log", "--format=%an <%ae>", "gh-pages") == "Ada <ada@example.org>"
    assert project.state() == before


def test_cname_other_branch_and_other_remote(project: Project, tmp_path: Path) -> None:
    git(project.root, "remote", "rename", "origin", "pages")
    config = PublishConfig(
        to="branch", remote="pages", branch="web/site", cname="graph.example.org"
    )
    publish(project.site, config)
    expected = SITE | {".nojekyll": "", "CNAME": "graph.example.org"}
    assert project.published("web/site") == expected


def test_the_same_site_again_makes_no_commit(project: Project) -> None:
    publish(project.site, BRANCH)
    refs, before = project.remote_refs(), project.state()
    assert "nothing was changed" in publish(project.site, BRANCH)
    assert (project.remote_refs(), project.state()) == (refs, before)


def test_a_new_site_replaces_the_old_one_and_keeps_the_history(project: Project) -> None:
    publish(project.site, BRANCH)
    (project.site / "machines" / "gb300.html").unlink()
    write(project.site, {"index.html": "second", "machines/h200.html": "new"})
    (project.root / "README.md").write_text("changed")
    publish(project.site, BRANCH)
    assert project.published() == {
        "index.html": "second",
        "machines/h200.html": "new",
        "figures/name with spaces.svg": "<svg/>",
        ".hidden": "",
        ".nojekyll": "",
    }
    newest, oldest = project.commits()
    assert newest == f"{oldest}+changes"


def test_a_stale_local_branch_is_neither_used_nor_moved(project: Project) -> None:
    publish(project.site, BRANCH)
    git(project.root, "branch", "gh-pages", "main")
    before = project.state()
    write(project.site, {"index.html": "second"})
    publish(project.site, BRANCH)
    assert project.state() == before
    assert len(project.commits()) == 2


@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_hooks_do_not_run(project: Project, tmp_path: Path, scope: str) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    # The remote is on this machine too, and has the global hooks: those may run on its side.
    names = ["pre-push", "pre-commit"] + ["reference-transaction"] * (scope == "--local")
    for name in names:
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(project.root, "config", scope, "core.hooksPath", str(hooks))
    publish(project.site, BRANCH)
    assert not (tmp_path / "hook-ran").exists()


@pytest.mark.parametrize("where", ["in it", "included", "by its place"])
def test_settings_of_the_checkout_hold(project: Project, tmp_path: Path, where: str) -> None:
    """An address that git rewrites, as settings say that may be in any of these files."""
    git(project.root, "remote", "set-url", "origin", "work:remote.git")
    key, address = f"url.{tmp_path}/.insteadOf", "work:"
    if where == "in it":
        git(project.root, "config", key, address)
    else:
        git(tmp_path, "config", "--file", str(tmp_path / "work.gitconfig"), key, address)
    if where == "included":
        git(project.root, "config", "include.path", "../../work.gitconfig")
    if where == "by its place":
        place = f"includeIf.gitdir:{tmp_path}/.path"
        git(tmp_path, "config", "--global", place, str(tmp_path / "work.gitconfig"))
    publish(project.site, BRANCH)
    assert project.published() == SITE | {".nojekyll": ""}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.worktree", "../"),
        ("extensions.worktreeConfig", "true"),
        ("remote.origin.mirror", "true"),
    ],
)
def test_settings_of_the_storage_do_not_hold(project: Project, key: str, value: str) -> None:
    git(project.root, "config", key, value)
    publish(project.site, BRANCH)
    assert project.published() == SITE | {".nojekyll": ""}


def test_a_partial_clone(project: Project) -> None:
    git(project.remote, "config", "uploadpack.allowFilter", "true")
    git(project.root, "config", "remote.origin.promisor", "true")
    git(project.root, "config", "remote.origin.partialCloneFilter", "blob:none")
    publish(project.site, BRANCH)
    write(project.site, {"index.html": "second"})
    publish(project.site, BRANCH)
    assert project.published()["index.html"] == "second"


def test_a_relative_remote_starts_at_the_top_of_the_checkout(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project.root, "remote", "set-url", "origin", "../remote.git")
    monkeypatch.chdir(project.root / "report")
    publish(Path("_site"), BRANCH)
    assert project.published() == SITE | {".nojekyll": ""}


def test_works_from_a_linked_worktree(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project.root, "worktree", "add", "--quiet", str(tmp_path / "linked"), "-b", "topic")
    monkeypatch.chdir(tmp_path / "linked")
    publish(project.site, BRANCH)
    assert project.published() == SITE | {".nojekyll": ""}


def test_a_refused_push_is_told_with_the_remotes_reason(project: Project) -> None:
    project.refuse_pushes("no releases on Fridays")
    assert_refused(
        project, BRANCH, "origin refused", "gh-pages", "hook declined", "no releases on Fridays"
    )


def test_a_push_that_came_second_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(project.site, BRANCH)
    first = project.published()
    write(project.site, {"index.html": "second"})
    push = branch_module._push

    def push_second(*arguments: object) -> None:
        tree = git(project.remote, "rev-parse", "gh-pages^{tree}")
        other = git(project.remote, "commit-tree", tree, "-p", "gh-pages", "-m", "Someone else")
        git(project.remote, "update-ref", "refs/heads/gh-pages", other)
        push(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(branch_module, "_push", push_second)
    with pytest.raises(PublishError, match=r"origin refused .* branch gh-pages: \[(remote )?rejec"):
        publish(project.site, BRANCH)
    assert project.commits()[0] == "Someone else"
    assert project.published() == first


def test_an_unreachable_remote(project: Project) -> None:
    git(project.root, "remote", "set-url", "origin", "/nowhere/remote.git")
    assert_refused(project, BRANCH, "origin cannot be read", "/nowhere/remote.git")


def test_an_unreachable_host(project: Project) -> None:
    git(project.root, "remote", "set-url", "origin", "http://127.0.0.1:1/remote.git")
    assert_refused(project, BRANCH, "origin cannot be read", "127.0.0.1")


def test_nobody_is_asked_for_a_password(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh and git run in a session without a terminal, and know of no window to ask in."""
    program = (
        f"#!{sys.executable}\nimport os, sys\n"
        f"alone = os.getsid(0) != {os.getsid(0)} and 'SSH_ASKPASS' not in os.environ\n"
        "sys.exit('cannot ask' if alone else 'asked')\n"
    )
    ssh = write(tmp_path, {"ssh": program}) / "ssh"
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("SSH_ASKPASS", "/bin/true")
    git(project.root, "remote", "set-url", "origin", "git@example.org:graphgain.git")
    assert_refused(project, BRANCH, "origin cannot be read", "cannot ask")


def test_an_unknown_remote(project: Project) -> None:
    config = PublishConfig(to="branch", remote="upstream")
    assert_refused(project, config, "'upstream' is not a remote", "it has origin")
    git(project.root, "remote", "remove", "origin")
    assert_refused(project, BRANCH, "'origin' is not a remote", "it has none")


@pytest.mark.parametrize("name", ["two words", "-f", "a..b", ""])
def test_a_name_that_no_branch_can_have(project: Project, name: str) -> None:
    assert_refused(project, PublishConfig(to="branch", branch=name), f"{name!r} is not a valid")


def test_the_branch_of_the_sources_is_not_overwritten(project: Project) -> None:
    config = PublishConfig(to="branch", branch="main")
    assert_refused(project, config, "main is checked out")
    git(project.root, "switch", "--quiet", "--create", "topic")
    assert_refused(project, config, "main of origin has no .nojekyll")


def test_outside_a_checkout(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(project, BRANCH, "needs a git checkout", "not a git repository")


def test_without_an_identity(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    git(project.root, "config", "user.useConfigOnly", "true")
    git(project.root, "config", "--global", "--remove-section", "user")
    assert_refused(project, BRANCH, "git does not know who publishes", "user.name")


def test_without_git(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PublishError, match="needs git; install it"):
        publish(project.site, BRANCH)


@pytest.mark.parametrize("target", ["branch", "folder"])
def test_a_site_that_was_not_built(project: Project, tmp_path: Path, target: str) -> None:
    (project.site / "index.html").unlink()
    config = PublishConfig.model_validate({"to": target, "folder": tmp_path / "www"})
    assert_refused(project, config, "_site/index.html does not exist", "make report")
    assert not (tmp_path / "www").exists()


def test_a_place_that_is_not_configured(project: Project) -> None:
    assert_refused(project, PublishConfig(), "config/config.yaml", "publish.to")
    assert_refused(project, PublishConfig(to="folder"), "config/config.yaml", "publish.folder")


def test_the_command_reads_the_configuration(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project.root, {"config/config.yaml": "publish: {to: branch}\n"})
    assert main(["publish"]) == 0
    assert capsys.readouterr().out.startswith("published the site of ")
    assert project.published() == SITE | {".nojekyll": ""}
    write(project.root, {"config/config.yaml": "publish: {to: null}\n"})
    assert main(["publish"]) == 1
    assert capsys.readouterr().err.startswith("graphgain: error: config/config.yaml does not say")


@pytest.fixture
def www(project: Project, tmp_path: Path) -> Path:
    return tmp_path / "www"


def to_folder(folder: Path) -> PublishConfig:
    return PublishConfig(to="folder", folder=folder)


def test_a_folder_gets_exactly_the_site(project: Project, www: Path) -> None:
    before = project.state()
    publish(project.site, to_folder(www))
    files = read(www)
    record = files.pop(RECORD)
    assert files == SITE
    assert project.state() == before
    assert [path.name for path in www.parent.glob(".www*")] == []
    check = ("sha256sum", "--check", "--strict", "--quiet", RECORD)
    subprocess.run(check, cwd=www, check=True)
    assert len(record.splitlines()) == len(SITE)


def test_the_same_site_again_leaves_the_folder(project: Project, www: Path) -> None:
    publish(project.site, to_folder(www))
    inode = www.stat().st_ino
    assert "nothing was changed" in publish(project.site, to_folder(www))
    assert www.stat().st_ino == inode


def test_a_new_site_replaces_the_folder(project: Project, www: Path) -> None:
    www.mkdir()
    publish(project.site, to_folder(www))
    (project.site / "machines" / "gb300.html").unlink()
    write(project.site, {"index.html": "second"})
    publish(project.site, to_folder(www))
    files = read(www)
    assert files.pop(RECORD)
    assert files == read(project.site)


def test_a_link_to_the_folder_stays_a_link(project: Project, www: Path, tmp_path: Path) -> None:
    www.mkdir()
    link = tmp_path / "link"
    link.symlink_to(www, target_is_directory=True)
    publish(project.site, to_folder(link))
    assert link.is_symlink()
    assert (www / "index.html").is_file()


def add_file(www: Path) -> None:
    (www / "notes.txt").write_text("mine")


def change_file(www: Path) -> None:
    (www / "index.html").write_text("edited by hand")


def add_link(www: Path) -> None:
    (www / "data").symlink_to("/usr")


def forget_record(www: Path) -> None:
    (www / RECORD).unlink()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (add_file, "notes.txt"),
        (change_file, "index.html"),
        (add_link, "data"),
        (forget_record, ".hidden"),
    ],
)
def test_a_users_file_is_never_deleted(
    project: Project, www: Path, change: Callable[[Path], None], named: str
) -> None:
    publish(project.site, to_folder(www))
    change(www)
    before = read(www)
    write(project.site, {"index.html": "second"})
    assert_refused(project, to_folder(www), f"holds {named},", "added or changed")
    assert read(www) == before


def test_a_published_file_that_got_lost_is_restored(project: Project, www: Path) -> None:
    publish(project.site, to_folder(www))
    (www / "index.html").unlink()
    publish(project.site, to_folder(www))
    assert (www / "index.html").read_text() == SITE["index.html"]


def test_a_folder_that_cannot_be_published_to(project: Project, tmp_path: Path) -> None:
    write(tmp_path, {"file": "text"})
    assert_refused(project, to_folder(tmp_path / "file"), "is a file")
    assert_refused(project, to_folder(tmp_path / "file" / "www"), "there is no folder")
    assert_refused(project, to_folder(project.root), "overlaps")
    assert_refused(project, to_folder(project.site / "www"), "overlaps")
    assert read(project.site) == SITE


def test_a_folder_without_write_permission(project: Project, tmp_path: Path) -> None:
    # The system administrator may write everywhere but in the kernel's own folders.
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    www = (closed if os.geteuid() else Path("/sys")) / "graphgain-www"
    assert_refused(project, to_folder(www), "was left as it was", "permi")
    assert not www.exists()


@pytest.mark.parametrize("step", ["copying", "exchanging"])
def test_a_failure_brings_the_old_folder_back(
    project: Project, www: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    publish(project.site, to_folder(www))
    before = read(www)
    write(project.site, {"index.html": "second"})
    rename = Path.rename

    def no_space(source: object, target: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    def rename_but_not_to_www(source: Path, target: Path) -> Path:
        if target == www and ".new" in source.name:
            raise OSError(16, "Device or resource busy")
        return rename(source, target)

    if step == "copying":
        monkeypatch.setattr("graphgain.publish.folder.shutil.copytree", no_space)
    else:
        monkeypatch.setattr(Path, "rename", rename_but_not_to_www)
    with pytest.raises(PublishError, match=r"was left as it was: .*(No space|busy)"):
        publish(project.site, to_folder(www))
    assert read(www) == before
    assert [path.name for path in www.parent.glob(".www*")] == []
