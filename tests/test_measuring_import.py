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


def of_card(folder: Path, uuid_hash: str, name: str = "NVIDIA H200") -> Path:
    """The H200's own documents, as if measured on the card with that hash."""
    shutil.copytree(PUBLISHED.parent / "h200", folder)
    raw = json.loads((folder / "machine.json").read_text())
    raw["gpu"] = {**raw["gpu"], "uuid_hash": uuid_hash, "name": name}
    (folder / "machine.json").write_text(json.dumps(raw))
    return folder


def keep_only(folder: Path, *names: str) -> None:
    for path in folder.iterdir():
        if path.name not in (*names, "machine.json"):
            path.unlink()


def test_another_card_of_the_same_model_joins_with_a_note(tmp_path: Path) -> None:
    kept = of_card(tmp_path / "results" / "h200", "aaaa")
    keep_only(kept, "handoff.json")
    brought = of_card(tmp_path / "brought", "bbbb")
    keep_only(brought, "launch_floor.json")
    with pytest.raises(MeasureError, match=r"h200/machine\.json"):
        import_results(brought, tmp_path / "results")
    written, same = import_results(brought, tmp_path / "results", allow_other_gpu=True)
    assert [path.name for path in written] == ["launch_floor.json"]
    assert [path.name for path in same] == ["machine.json"]
    notes = json.loads((kept / "launch_floor.json").read_text())["notes"]
    assert "GPU bbbb" in notes[0] and "than machine.json describes" in notes[0]


def test_another_model_never_joins(tmp_path: Path) -> None:
    of_card(tmp_path / "results" / "h200", "aaaa")
    brought = of_card(tmp_path / "brought", "bbbb", "NVIDIA H100")
    with pytest.raises(GraphgainError, match="belongs to another machine"):
        import_results(brought, tmp_path / "results", allow_other_gpu=True)


def modes_only(folder: Path, *modes: str) -> None:
    """Leave these modes of the H200's ttft document, and nothing else."""
    keep_only(folder, "ttft.json")
    raw = json.loads((folder / "ttft.json").read_text())
    for part in ("engines", "rows", "client_check"):
        raw[part] = [each for each in raw[part] if each["mode"] in modes]
    for run in raw["engines"]:
        del run["card"], run["notes"]
    (folder / "ttft.json").write_text(json.dumps({**raw, "notes": []}))


def test_modes_of_another_card_join_those_that_are_there(tmp_path: Path) -> None:
    kept = of_card(tmp_path / "results" / "h200", "aaaa")
    modes_only(kept, "piecewise", "no-piecewise")
    brought = of_card(tmp_path / "brought", "bbbb")
    modes_only(brought, "breakable", "no-piecewise")
    with pytest.raises(MeasureError, match=r"ttft\.json"):
        import_results(brought, tmp_path / "results", allow_other_gpu=True)
    import_results(brought, tmp_path / "results", allow_other_gpu=True, keep=True)
    raw = json.loads((kept / "ttft.json").read_text())
    found = {run["mode"]: run.get("card") for run in raw["engines"]}
    assert found == {"breakable": "bbbb", "no-piecewise": "bbbb", "piecewise": None}
    assert {row["mode"] for row in raw["rows"]} == set(found)
    # The runs say where they were; the document as a whole is of no single card.
    assert raw["notes"] == []
    # The same again changes nothing, and a third card leaves what the first two said.
    written, _ = import_results(brought, tmp_path / "results", allow_other_gpu=True, keep=True)
    assert written == []
    third = of_card(tmp_path / "third", "cccc")
    modes_only(third, "hicache")
    import_results(third, tmp_path / "results", allow_other_gpu=True, keep=True)
    raw = json.loads((kept / "ttft.json").read_text())
    assert {run["mode"]: run.get("card") for run in raw["engines"]} == found | {"hicache": "cccc"}


def test_keeping_modes_lets_no_other_document_be_replaced(tmp_path: Path) -> None:
    kept = of_card(tmp_path / "results" / "h200", "aaaa")
    brought = of_card(tmp_path / "brought", "aaaa")
    for folder, names in ((kept, ("ttft.json", "gil.json")), (brought, ("ttft.json", "gil.json"))):
        keep_only(folder, *names)
    raw = json.loads((brought / "gil.json").read_text())
    (brought / "gil.json").write_text(json.dumps({**raw, "notes": ["another"]}))
    before = (kept / "ttft.json").read_bytes()
    with pytest.raises(MeasureError, match=r"gil\.json"):
        import_results(brought, tmp_path / "results", keep=True)
    assert (kept / "ttft.json").read_bytes() == before


@pytest.mark.parametrize("text", ["{", "[]", '{"experiment": "ttft"}', ""])
def test_modes_are_not_joined_to_a_broken_document(tmp_path: Path, text: str) -> None:
    kept = of_card(tmp_path / "results" / "h200", "aaaa")
    brought = of_card(tmp_path / "brought", "aaaa")
    keep_only(brought, "ttft.json")
    (kept / "ttft.json").write_text(text)
    with pytest.raises(DocumentError, match=r"results/h200/ttft\.json"):
        import_results(brought, tmp_path / "results", keep=True)
    assert (kept / "ttft.json").read_text() == text
