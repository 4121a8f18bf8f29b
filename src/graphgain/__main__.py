"""The command line. Each command imports what it needs: measuring needs only the standard library
and numpy, so that it runs on a bare GPU machine."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from graphgain import __version__
from graphgain.engines.commands import add_commands as add_ttft
from graphgain.errors import GraphgainError
from graphgain.measuring.commands import add_commands
from graphgain.traces.commands import add_commands as add_trace_command
from graphgain.unroll.commands import add_commands as add_unroll

_HUNG_UP = 128 + signal.SIGHUP
_NOBODY_READS = 128 + signal.SIGPIPE
_TERMINATED = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. A GraphgainError is printed as one sentence."""
    options = _parser().parse_args(arguments)
    _unwind_on_hangup()
    try:
        code = int(options.command(options) or 0)
        sys.stdout.flush()
        return code
    except GraphgainError as error:
        print(f"graphgain: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # as of `| head`; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS
    except KeyboardInterrupt:
        print("graphgain: interrupted", file=sys.stderr)
        return 130
    except SystemExit as ending:
        if ending.code in (_HUNG_UP, _TERMINATED):
            print("graphgain: terminated", file=sys.stderr)
        raise


def _unwind_on_hangup() -> None:
    """A terminal that goes away ends a command as Ctrl-C does: what it started ends first."""
    handled = signal.getsignal(signal.SIGHUP) != signal.SIG_DFL  # by nohup, for instance
    if handled or threading.current_thread() is not threading.main_thread():
        return

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(_HUNG_UP)

    signal.signal(signal.SIGHUP, end)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphgain", description=__doc__.partition("\n")[0])
    parser.add_argument("--version", action="version", version=f"graphgain {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    validate = commands.add_parser("validate", help="check result documents against their models")
    validate.add_argument("paths", nargs="*", type=Path, default=[Path("results")])
    validate.set_defaults(command=_validate)

    notebook = commands.add_parser("notebook", help="execute one notebook")
    notebook.add_argument("source", type=Path, help="the .py source, such as notebooks/ttft.py")
    notebook.add_argument("--build", type=Path, default=Path("build"))
    notebook.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=YAML", dest="parameters"
    )
    notebook.add_argument("--timeout-s", type=int, default=600, help="limit of one cell")
    notebook.set_defaults(command=_notebook)

    site = commands.add_parser("site", help="build the site from what the notebooks wrote")
    site.add_argument("--build", type=Path, default=Path("build"))
    site.add_argument("--out", type=Path, default=Path("report/_site"))
    site.add_argument("--machines", nargs="*", help="default: as configured")
    site.add_argument("--commit", help="default: of this checkout")
    site.set_defaults(command=_site)

    publish = commands.add_parser("publish", help="put the built site where config.yaml says")
    publish.add_argument("--site", type=Path, default=Path("report/_site"))
    publish.set_defaults(command=_publish)
    add_commands(commands)
    add_unroll(commands)
    add_ttft(commands)
    add_trace_command(commands)
    return parser


def _validate(options: argparse.Namespace) -> None:
    from graphgain.results.store import read_document, read_machine

    files = [
        file
        for path in options.paths
        for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])
    ]
    for file in files:
        if file.name == "machine.json":
            read_machine(file.parent)
        else:
            read_document(file)
    print(f"{len(files)} documents are valid")


def _notebook(options: argparse.Namespace) -> None:
    import yaml

    from graphgain.errors import NotebookError
    from graphgain.notebooks import read_notebook, run

    parameters = {}
    for text in options.parameters:
        name, equals, value = text.partition("=")
        if not equals:
            raise NotebookError(f"--parameter {text}: write NAME=VALUE, with the value as YAML.")
        parameters[name] = yaml.safe_load(value)
    run(read_notebook(options.source), parameters, options.build, timeout_s=options.timeout_s)


def _site(options: argparse.Namespace) -> None:
    from graphgain.config import load_config, select_machines
    from graphgain.site.build import build_site
    from graphgain.site.commit import describe_commit

    config = load_config()
    if options.machines:
        config = config.model_copy(update={"machines": options.machines})
    machines = select_machines(config, Path("results"))
    commit = options.commit or describe_commit(Path())
    used = build_site(config, machines, options.build, options.out, commit)
    print(f"built {options.out}/index.html with {used}")


def _publish(options: argparse.Namespace) -> None:
    from graphgain.config import load_config
    from graphgain.publish import publish

    print(publish(options.site, load_config().publish))


if __name__ == "__main__":
    sys.exit(main())
