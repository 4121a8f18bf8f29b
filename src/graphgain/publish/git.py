"""Running git without questions, and on a throwaway repository configured as the checkout is.

Needs git 2.31 or later, which reads settings from its environment.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from graphgain.errors import PublishError

Result = subprocess.CompletedProcess[str]

# Settings not taken over: what includes name is listed by itself, and a mirror is pushed whole.
LEFT_OUT = re.compile(r"include(if)?\..*|remote\..*\.mirror")


class Git(Protocol):
    """Runs git with these arguments, in a folder and an environment already chosen."""

    def __call__(self, *arguments: str) -> Result: ...


def run(*command: str, cwd: Path, environment: Mapping[str, str]) -> Result:
    """Run a command that has no terminal and no input; raises PublishError where it is missing."""
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,  # without a terminal, ssh cannot ask for a password
            check=False,
        )
    except FileNotFoundError:
        raise PublishError(f"publishing to a branch needs {command[0]}; install it.") from None


def output(result: Result) -> str:
    """What a command printed, without the line's end."""
    return result.stdout.strip()


def require(result: Result, problem: str) -> str:
    """The output of a command; raises PublishError with the problem and git's reason."""
    if result.returncode != 0:
        raise PublishError(f"{problem}: {reason(result)}.")
    return output(result)


def reason(result: Result) -> str:
    """What a failed command complained of first, without git's prefixes."""
    for line in result.stderr.splitlines():
        if line.strip() and not line.lower().startswith(("warning:", "hint:")):
            return line.removeprefix("fatal: ").removeprefix("error: ").strip().rstrip(".:")
    return f"it ended with exit code {result.returncode}"


def quiet_environment() -> dict[str, str]:
    """This process's environment, in which git asks nobody and takes no optional locks."""
    kept = {name: value for name, value in os.environ.items() if name != "SSH_ASKPASS"}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def scratch_environment(here: Git, scratch: Path) -> dict[str, str]:
    """An environment in which git works on the repository `scratch`, configured as `here` is.

    Remotes, credentials, proxies and the identity are the checkout's; hooks are off. A copy of
    the settings is passed, not the files, because `includeIf` depends on where a repository lies.
    """
    own = require(here("rev-parse", "--local-env-vars"), "git does not answer").split()
    environment = {name: text for name, text in quiet_environment().items() if name not in own}
    environment["GIT_DIR"] = str(scratch)
    shared = run("git", "config", "--list", "-z", cwd=scratch, environment=environment).stdout
    known = set(shared.split("\0"))
    settings = [
        (key, value if equals else "true")
        for entry in here("config", "--list", "-z").stdout.split("\0")
        if entry not in known
        for key, equals, value in [entry.partition("\n")]
        if not LEFT_OUT.fullmatch(key)
    ]
    settings += [("core.hooksPath", os.devnull), ("gc.auto", "0"), ("maintenance.auto", "false")]
    environment["GIT_CONFIG_COUNT"] = str(len(settings))
    for index, (key, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{index}"] = key
        environment[f"GIT_CONFIG_VALUE_{index}"] = value
    return environment
