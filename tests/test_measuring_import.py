"""`graphgain import`: all or nothing, never over what is there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphgain.__main__ import main
from graphgain.errors import DocumentError, GraphgainError, MeasureError
from graphgain.measuring.importing import import_results

PUBLISHED = Path(__file__).resolve().parents[1] / "results" / "gb300-published"


@pytest.fixture
def brought(tmp_path: Path) -> Path:
    """Two real documents under a name that a copy may have."""
    folder = tmp_path / "from-usb-stick"
    folder.mkdir()
    for name in ("machine.json", "launch_floor.json", "gil.json"):
        shutil.copyfile(PUBLISHED / name, folder / name)
    return folder


def test_results_go_to_the_folder_of_their_machine(brought: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    written, same = import_results(brought, results)
    assert len(written) == 3 and same == []
    for path in brought.iterdir():
        assert (results / "gb300-published" / path.name).read_bytes() == path.read_bytes()
    written, same = import_results(brought, results)
    assert written == [] and len(same) == 3


def test_a_difference_is_refused_by_name_and_nothing_is_copied(
    brought: Path, tmp_path: Path
) -> None:
    target = tmp_path / "results" / "gb300-published"
    target.mkdir(parents=True)
    (target / "gil.json").write_text("{}")
    with pytest.raises(MeasureError, match=r"gb300-published/gil\.json"):
        import_results(brought, tmp_path / "results")
    assert [path.name for path in target.iterdir()] == ["gil.json"]
    assert (target / "gil.json").read_text() == "{}"


def test_an_invalid_document_stops_all_with_its_own_path(brought: Path, tmp_path: Path) -> None:
    path = brought / "launch_floor.json"
    raw = json.loads(path.read_text())
    raw["rows"][0]["host_us"]["median"] = "fast"
    path.write_text(json.dumps(raw))
    with pytest.raises(DocumentError) as caught:
        import_results(brought, tmp_path / "results")
    assert str(path) in str(caught.value) and "rows[0].host_us.median" in str(caught.value)
    assert not (tmp_path / "results").exists()


def link_a_document(folder: Path) -> None:
    (folder / "gil.json").unlink()
    (folder / "gil.json").symlink_to(PUBLISHED / "gil.json")


def escape(folder: Path) -> None:
    raw = json.loads((folder / "machine.json").read_text())
    (folder / "machine.json").write_text(json.dumps({**raw, "slug": "../../escaped"}))


def other_machine(folder: Path) -> None:
    raw = json.loads((folder / "gil.json").read_text())
    (folder / "gil.json").write_text(json.dumps({**raw, "machine": "h200"}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (link_a_document, "gil.json: is a link"),
        (lambda folder: (folder / "sub").mkdir(), "sub: is a link or no plain file"),
        (lambda folder: (folder / "notes.txt").touch(), "not a result document"),
        (lambda folder: (folder / "machine.json").unlink(), "has no machine.json"),
        (lambda folder: (folder / "machine.json").write_text("{"), "not a machine document"),
        (escape, "cannot name a folder"),
        (other_machine, "machine is 'h200'"),
    ],
)
def test_strange_folders_are_refused(
    brought: Path, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(brought)
    with pytest.raises(GraphgainError) as caught:
        import_results(brought, tmp_path / "results")
    assert said in str(caught.value)
    assert not (tmp_path / "results").exists()


def test_nothing_is_written_through_a_link(brought: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "gb300-published").symlink_to(elsewhere)
    with pytest.raises(MeasureError, match="symbolic link"):
        import_results(brought, tmp_path / "results")
    assert list(elsewhere.iterdir()) == []


def test_the_folder_itself_has_to_be_one(tmp_path: Path, brought: Path) -> None:
    (tmp_path / "link").symlink_to(brought)
    for folder in (tmp_path / "nowhere", tmp_path / "link"):
        with pytest.raises(MeasureError, match="is not a folder of results"):
            import_results(folder, tmp_path / "results")


def test_the_command_says_what_it_did(
    brought: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", str(brought), "--results", str(tmp_path / "results")]
    assert main(command) == 0
    assert capsys.readouterr().out.count("imported") == 3
    assert main(command) == 0
    assert capsys.readouterr().out.count("is there already") == 3
