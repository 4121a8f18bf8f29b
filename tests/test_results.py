"""The models refuse what is wrong, and the store names it and never loses a good file."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from graphgain.errors import DocumentError
from graphgain.results import MODELS, SCHEMA_VERSION, Machine, Quantity
from graphgain.results.quantity import printed
from graphgain.results.store import (
    dump_json,
    list_machines,
    load_documents,
    machine_labels,
    read_document,
    read_machine,
    write_document,
)

RESULTS = Path(__file__).parents[1] / "results"
PUBLISHED = sorted(
    path for path in RESULTS.glob("*-published/*.json") if path.name != "machine.json"
)
FLOOR = json.loads((RESULTS / "gb300-published" / "launch_floor.json").read_text("utf-8"))
MACHINE = json.loads((RESULTS / "gb300-published" / "machine.json").read_text("utf-8"))
PROVENANCE: dict[str, object] = {
    "started_at": "2026-10-01T10:00:00Z",
    "ended_at": "2026-10-01T10:01:00Z",
    "command": ["graphgain", "measure", "launch_floor"],
    "git_commit": None,
    "git_dirty": None,
    "source_hash": "0" * 64,
    "sources": [],
    "versions": {},
    "process_runs": 1,
}

Change = Callable[[dict[str, Any]], Any]


def changed(raw: dict[str, Any], change: Change) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(raw))
    change(copy)
    return copy


def put(folder: Path, raw: Any, name: str = "launch_floor.json") -> Path:
    path = folder / "gb300-published" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """The message with which the store refuses a document; it always names the file."""
    with pytest.raises(DocumentError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


# Reading


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_published_document_survives_writing_and_reading(path: Path, tmp_path: Path) -> None:
    document = read_document(path)
    copy = tmp_path / path.parent.name / path.name
    for form in (document, json.loads(path.read_text("utf-8"))):
        write_document(copy, form)
        assert copy.read_bytes() == path.read_bytes()
        assert read_document(copy) == document


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (lambda d: d.update(colour="red"), "colour", "Extra inputs are not permitted"),
        (
            lambda d: d["rows"][1].update(host_ns=1.0),
            "rows[1].host_ns",
            "Extra inputs are not permitted",
        ),
        (
            lambda d: d["rows"][0]["host_us"].update(mean=1.0),
            "rows[0].host_us.mean",
            "Extra inputs are not permitted",
        ),
        (lambda d: d["rows"][2].pop("host_us"), "rows[2].host_us", "Field required"),
        (lambda d: d["rows"][0].update(path="sideways"), "rows[0].path", "'driver'"),
        (lambda d: d["rows"][0].update(launches=0), "rows[0].launches", "greater than or equal"),
        (lambda d: d["rows"][0].update(launches=1.5), "rows[0].launches", "integer"),
        (lambda d: d.update(rows=[]), "rows", "at least 1 item"),
        (lambda d: d.pop("parameters"), "parameters", "Field required"),
        (lambda d: d.update(machine="GB300 !"), "machine", "pattern"),
        (lambda d: d["source"].pop("section"), "source.section", "Field required"),
        (lambda d: d["source"].update(published="soon"), "source.published", "date"),
    ],
)
def test_refusal_names_field_and_reason(
    tmp_path: Path, change: Change, field: str, reason: str
) -> None:
    message = refusal(put(tmp_path, changed(FLOOR, change)))
    assert message.startswith(f"{field}: ")
    assert reason in message


def test_refusal_shows_three_problems_and_counts_the_rest(tmp_path: Path) -> None:
    names = [f"extra_{number}" for number in range(5)]
    message = refusal(put(tmp_path, FLOOR | dict.fromkeys(names, 1)))
    assert message.count("Extra inputs are not permitted") == 3
    assert message.endswith("(and 2 more)")


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, "1", None])
def test_unknown_schema_version_is_refused(tmp_path: Path, version: object) -> None:
    message = refusal(put(tmp_path, FLOOR | {"schema_version": version}))
    assert f"schema_version is {version!r}" in message
    assert "this graphgain reads 1" in message


def test_missing_schema_version_is_refused(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, changed(FLOOR, lambda d: d.pop("schema_version"))))
    assert "schema_version is None" in message


def test_missing_file_is_a_sentence(tmp_path: Path) -> None:
    assert refusal(tmp_path / "launch_floor.json") == "there is no such document."


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_truncated_document_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    whole = json.dumps(FLOOR)
    length = data.draw(st.integers(0, len(whole) - 1))
    assert "broken or cut off" in refusal(put(tmp_path, whole[:length]))


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, FLOOR)
    path.write_bytes(b"\xff\xfe{}")
    assert "not valid JSON" in refusal(path)


@pytest.mark.parametrize("raw", [[], [FLOOR], "text", 3, None])
def test_json_that_is_no_object_is_refused(tmp_path: Path, raw: object) -> None:
    assert "a document is a JSON object" in refusal(put(tmp_path, json.dumps(raw)))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_number_that_is_not_finite_is_refused(tmp_path: Path, bad: float) -> None:
    def change(document: dict[str, Any]) -> None:
        document["rows"][0]["host_us"]["median"] = bad

    message = refusal(put(tmp_path, changed(FLOOR, change)))
    assert message.startswith("rows[0].host_us.median: ")
    assert "finite number" in message


def test_plain_float_fields_refuse_infinity_too(tmp_path: Path) -> None:
    machine = tmp_path / "gb300-published" / "machine.json"
    put(tmp_path, MACHINE | {"memory_gib": float("inf")}, "machine.json")
    with pytest.raises(DocumentError, match=r"memory_gib: .*finite number"):
        read_machine(machine.parent)


def test_document_in_the_wrong_folder_is_refused(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, FLOOR | {"machine": "h200"}))
    assert message == "machine is 'h200', but the folder is 'gb300-published'."


def test_document_under_the_wrong_name_is_refused(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, FLOOR, "ttft.json"))
    assert "must be named launch_floor.json" in message


@pytest.mark.parametrize("experiment", ["launch_roof", None, 7, ["ttft"], {"a": 1}])
def test_unknown_experiment_is_refused(tmp_path: Path, experiment: object) -> None:
    message = refusal(put(tmp_path, FLOOR | {"experiment": experiment}))
    assert f"experiment {experiment!r} is unknown" in message
    assert all(known in message for known in MODELS)


def test_published_document_with_provenance_is_refused(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, FLOOR | {"provenance": PROVENANCE}))
    assert "a published document has a source and no provenance" in message


def test_published_document_without_source_is_refused(tmp_path: Path) -> None:
    message = refusal(put(tmp_path, changed(FLOOR, lambda d: d.pop("source"))))
    assert "a published document has a source and no provenance" in message


def test_measured_document_has_provenance_and_no_source(tmp_path: Path) -> None:
    measured = changed(FLOOR, lambda d: d.pop("source")) | {
        "kind": "measured",
        "provenance": PROVENANCE,
    }
    assert read_document(put(tmp_path, measured)).provenance is not None
    for wrong in (measured | {"source": FLOOR["source"]}, measured | {"provenance": None}):
        message = refusal(put(tmp_path, wrong))
        assert "a measured document has a provenance and no source" in message


# Machines


def test_machine_survives_dumping() -> None:
    for slug in ("gb300-published", "rtx5070ti-published"):
        machine = read_machine(RESULTS / slug)
        text = (RESULTS / slug / "machine.json").read_text("utf-8")
        assert dump_json(machine) == text
        assert Machine.model_validate_json(text) == machine


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: m.update(slug="h200"), "slug is 'h200', but the folder is 'gb300-published'"),
        (lambda m: m.update(schema_version=2), "schema_version is 2"),
        (lambda m: m["gpu"].update(colour="green"), "gpu.colour: Extra inputs"),
        (lambda m: m.update(label=""), "label: "),
        (lambda m: m.pop("source"), "a published machine, and only that, has a source"),
        (lambda m: m.update(kind="measured"), "a published machine, and only that, has a source"),
    ],
)
def test_wrong_machine_is_refused(tmp_path: Path, change: Change, reason: str) -> None:
    path = put(tmp_path, changed(MACHINE, change), "machine.json")
    with pytest.raises(DocumentError) as caught:
        read_machine(path.parent)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_folder_without_machine_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"machine\.json: there is no such document"):
        read_machine(tmp_path)


def test_machines_are_listed_published_first(tmp_path: Path) -> None:
    for slug in ("gb300-published", "rtx5070ti-published"):
        shutil.copytree(RESULTS / slug, tmp_path / slug)
    own = tmp_path / "a100"
    own.mkdir()
    raw = changed(MACHINE, lambda m: m.pop("source")) | {"slug": "a100", "kind": "measured"}
    (own / "machine.json").write_text(json.dumps(raw), encoding="utf-8")
    slugs = [machine.slug for machine in list_machines(tmp_path)]
    assert slugs == ["gb300-published", "rtx5070ti-published", "a100"]


def test_labels_by_slug_in_the_given_order() -> None:
    labels = machine_labels(RESULTS, ["rtx5070ti-published", "gb300-published"])
    assert list(labels.items()) == [
        ("rtx5070ti-published", "RTX 5070 Ti (published)"),
        ("gb300-published", "GB300 (published)"),
    ]


def test_documents_are_loaded_where_they_exist() -> None:
    machines = ["rtx5070ti-published", "gb300-published"]
    assert list(load_documents(RESULTS, machines, MODELS["launch_floor"])) == machines
    assert list(load_documents(RESULTS, machines, MODELS["ttft"])) == ["gb300-published"]
    assert load_documents(RESULTS, machines, MODELS["handoff"]) == {}


# Writing


def test_invalid_document_leaves_the_old_file(tmp_path: Path) -> None:
    path = put(tmp_path, FLOOR)
    before = path.read_bytes()
    with pytest.raises(DocumentError, match=r"rows\[0\]\.launches"):
        write_document(path, changed(FLOOR, lambda d: d["rows"][0].update(launches=0)))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_invalid_document_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="experiment 'launch_roof' is unknown"):
        write_document(tmp_path / "new" / "x.json", FLOOR | {"experiment": "launch_roof"})
    with pytest.raises(DocumentError, match="schema_version"):
        write_document(tmp_path / "new" / "x.json", FLOOR | {"schema_version": 2})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = put(tmp_path, FLOOR)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    # os.replace is what Path.replace calls, whichever of the two the code uses.
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_document(path, FLOOR | {"notes": ["new"]})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    path = tmp_path / "gb300-published" / "launch_floor.json"
    with pytest.raises(KeyboardInterrupt):
        write_document(path, FLOOR)
    assert list(path.parent.iterdir()) == []


def test_written_document_replaces_the_old_one(tmp_path: Path) -> None:
    path = put(tmp_path, FLOOR)
    write_document(path, FLOOR | {"notes": ["new"]})
    assert read_document(path).notes == ["new"]
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o644


def test_dump_is_readable_text() -> None:
    text = dump_json(Quantity(median=1.5, approximate=True))
    assert text == '{\n  "median": 1.5,\n  "approximate": true\n}\n'


# Quantities


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "needs a median, or both low and high"),
        ({"low": 1.0, "interval": "run medians"}, "needs a median, or both low and high"),
        ({"median": 1.0, "low": 1.0, "interval": "quartiles"}, "low and high come together"),
        ({"median": 1.0, "high": 1.0}, "low and high come together"),
        ({"low": 1.0, "high": 2.0}, "come with an interval"),
        ({"median": 1.0, "interval": "quartiles"}, "come with an interval"),
        ({"low": 2.0, "high": 1.0, "interval": "printed range"}, "low 2.0 is above high 1.0"),
        ({"low": 1.0, "high": 2.0, "interval": "guess"}, "Input should be 'run medians'"),
        ({"median": 1.0, "n": 0}, "greater than or equal to 1"),
        ({"median": 1.0, "runs": [1.0, float("nan")]}, "finite number"),
        ({"median": 1.0, "samples": [[1.0], [float("inf")]]}, "finite number"),
    ],
)
def test_inconsistent_quantity_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Quantity.model_validate(fields)


def test_quantity_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(printed(1.0), "median", 2.0)  # noqa: B010 - an assignment is what is tested


def test_printed_number_has_no_interval() -> None:
    assert printed(74, approximate=True) == Quantity(median=74, approximate=True)
    assert not printed(283).approximate


finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(min_value=-1e12, max_value=1e12)


@given(low=moderate, high=moderate)
def test_range_is_accepted_exactly_when_it_is_ordered(low: float, high: float) -> None:
    fields = {"low": low, "high": high, "interval": "printed range"}
    if low > high:
        with pytest.raises(ValidationError, match="is above high"):
            Quantity.model_validate(fields)
    else:
        assert low <= Quantity.model_validate(fields).value <= high


@given(median=finite, bounds=st.tuples(finite, finite).map(sorted))
def test_value_is_the_median_where_there_is_one(median: float, bounds: list[float]) -> None:
    low, high = bounds
    quantity = Quantity(median=median, low=low, high=high, interval="run medians")
    assert quantity.value == median


@given(
    median=finite,
    runs=st.none() | st.lists(finite, min_size=1, max_size=5),
    n=st.none() | st.integers(1, 10**6),
    approximate=st.booleans(),
)
def test_quantity_survives_json_to_the_last_bit(
    median: float, runs: list[float] | None, n: int | None, approximate: bool
) -> None:
    quantity = Quantity(median=median, runs=runs, n=n, approximate=approximate)
    assert Quantity.model_validate(json.loads(dump_json(quantity))) == quantity
