"""Publishing into a folder, such as one that a web server serves."""

import shutil
from pathlib import Path

from graphgain.errors import PublishError, SiteError
from graphgain.publish.content import content
from graphgain.site.swap import replacing

# Lies in a published folder and lists what was put there, in the format of `sha256sum`.
RECORD = ".graphgain-site"


def publish_to_folder(site: Path, folder: Path) -> str:
    """Replace a folder by a copy of the site in one step; returns what was done.

    The folder must be absent, empty, or hold nothing but what was published there before: a file
    that somebody added or changed is never deleted. Raises PublishError; the folder is then as it
    was.
    """
    source, target = site.resolve(), folder.resolve()
    _check_place(site, folder, source, target)
    try:
        files = content(source)
        record = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
        present = content(target)
        recorded = _read_record(target) if present.pop(RECORD, None) else ""
        foreign = _foreign(present, recorded)
        if foreign:
            raise PublishError(
                f"publish.folder {folder} holds {foreign[0]}, added or changed by somebody else "
                f"({len(foreign)} such files in all); move them away or choose another folder."
            )
        if recorded == record and present == files:
            return f"{folder} has this site already; nothing was changed."
        with replacing(target) as fresh:
            shutil.copytree(source, fresh, dirs_exist_ok=True)
            (fresh / RECORD).write_text(record, encoding="utf-8")
    except (OSError, SiteError) as error:
        raise PublishError(f"{folder} was left as it was: {error}") from error
    return f"published {site} in {folder}: {len(files)} files."


def _check_place(site: Path, folder: Path, source: Path, target: Path) -> None:
    if source.is_relative_to(target) or target.is_relative_to(source):
        raise PublishError(f"publish.folder {folder} overlaps {site}; choose another folder.")
    if not target.parent.is_dir():
        raise PublishError(f"publish.folder {folder}: there is no folder {target.parent}; make it.")
    if target.exists() and not target.is_dir():
        raise PublishError(f"publish.folder {folder} is a file; choose another name.")


def _read_record(folder: Path) -> str:
    return (folder / RECORD).read_text(encoding="utf-8", errors="replace")


def _foreign(present: dict[str, str], recorded: str) -> list[str]:
    """The files that are not there as they were published."""
    lines = set(recorded.splitlines())
    return sorted(name for name, digest in present.items() if f"{digest}  {name}" not in lines)
