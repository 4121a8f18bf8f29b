"""The command line: what is not there is a sentence, and a reader who has enough is no error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphgain.__main__ import main

CHECKOUT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["notebook", "notebooks/nosuch.py"], "notebooks/nosuch.py: there is no such"),
        (["site", "--build", "nosuch", "--out", "{out}"], "Run `make report`"),
        (["site", "--machines", "nosuch", "--out", "{out}"], "names 'nosuch'"),
        (["validate", "nosuch.json"], "nosuch.json: there is no such document"),
        (["import", "nosuch"], "nosuch: is not a folder"),
        (["publish", "--site", "nosuch"], "nosuch/index.html does not exist"),
        (["trace", "nosuch"], "nosuch: there is no such file"),
        (["ttft", "--import", "nosuch"], "nosuch: cannot be read"),
    ],
)
def test_what_is_not_there_is_named(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(CHECKOUT)
    out = tmp_path / "site"
    assert main([argument.format(out=out) for argument in arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("graphgain: error: ")
    assert sentence in said
    assert not out.exists()


@pytest.mark.parametrize("command", [["ttft", "--list"], ["validate"], ["status"]])
def test_a_reader_who_has_enough_is_no_error(command: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "graphgain", *command],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=CHECKOUT,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")
