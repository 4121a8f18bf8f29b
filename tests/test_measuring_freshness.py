"""Which documents are stale, and why: by content, whatever the file times."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from graphgain.engines.keeping import keep_other_modes
from graphgain.experiments import EXPERIMENTS
from graphgain.freshness import check_document, check_machine, status_table
from graphgain.measuring.provenance import ROOT, experiment_sources, git_state, source_hash
from measuring_stage import make_stage

GIL = EXPERIMENTS["gil"]
PUBLISHED = ROOT / "results"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A document as today's code would measure it."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "machine.json").write_text(json.dumps({"kind": "measured"}))
    path = folder / "gil.json"
    provenance = {"source_hash": source_hash(GIL), "parameters": GIL.with_overrides({})}
    path.write_text(json.dumps({"schema_version": 1, "kind": "measured", "provenance": provenance}))
    return path


def change(path: Path, **provenance: Any) -> None:
    document = json.loads(path.read_text())
    document["provenance"] |= provenance
    path.write_text(json.dumps(document))


def test_fresh_whatever_its_time(path: Path) -> None:
    os.utime(path, (0, 0))
    found = check_document(path)
    assert (found.state, found.reasons) == ("fresh", ())


def test_another_source_is_named_old_to_new(path: Path) -> None:
    change(path, source_hash="0" * 64)
    found = check_document(path)
    assert found.state == "stale"
    assert found.reasons == (f"source 00000000 → {source_hash(GIL)[:8]}",)


def test_each_changed_parameter_is_named_old_to_new(path: Path) -> None:
    found = check_document(path, {"gil": {"limit_s": 9.0, "background_threads": [0, 8]}})
    assert found.state == "stale"
    assert found.reasons == (
        "parameter background_threads [0, 1, 2, 4, 6, 10] → [0, 8]",
        "parameter limit_s 3.0 → 9.0",
    )


def test_parameters_that_came_and_went_are_named(path: Path) -> None:
    parameters = {**GIL.with_overrides({}), "old_one": 1}
    del parameters["warmup_s"]
    change(path, parameters=parameters)
    assert check_document(path).reasons == (
        "parameter warmup_s (none) → 0.1",
        "parameter old_one 1 → (none)",
    )


@pytest.mark.parametrize("older", [True, False])
def test_modes_kept_from_older_code_are_named(path: Path, older: bool) -> None:
    now = source_hash(EXPERIMENTS["ttft"])
    kept = made_document("aaaa" * 16 if older else now, "commit1", ("vllm", "eager"))
    own = made_document(now, "commit2", ("vllm", "piecewise"))
    document = keep_other_modes(own, kept)
    path = path.with_name("ttft.json")
    path.write_text(json.dumps(document))
    found = check_document(path)
    if older:
        assert found.reasons == (f"modes vllm:eager: source aaaaaaaa → {now[:8]}",)
        assert found.changed == ("source of some modes",)
    assert found.state == ("stale" if older else "fresh")


def made_document(source: str, commit: str, mode: tuple[str, str]) -> dict[str, Any]:
    """As much of a document about one mode as joining and freshness look at."""
    engine, name = mode
    return {
        "schema_version": 1,
        "experiment": "ttft",
        "kind": "measured",
        "parameters": {},
        "notes": [],
        "rows": [],
        "engines": [{"engine": engine, "mode": name, "notes": []}],
        "provenance": {
            "source_hash": source,
            "git_commit": commit,
            "parameters": EXPERIMENTS["ttft"].with_overrides({}),
        },
    }


def test_another_schema_is_stale(path: Path) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema_version": 0}))
    assert check_document(path).reasons == ("schema 0 → 1",)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema_version": 1, "kind": "measured"}'])
def test_a_broken_document_is_listed_as_broken(path: Path, text: str) -> None:
    path.write_text(text)
    assert check_document(path).state == "broken"


def test_published_documents_are_published() -> None:
    found = check_machine(PUBLISHED / "gb300-published", local=False, gpu=False)
    assert len(found) == len(list((PUBLISHED / "gb300-published").glob("*.json"))) - 1
    assert {document.state for document in found} == {"published"}


def test_missing_and_skipped_are_told_apart(path: Path) -> None:
    states = {
        document.experiment: document
        for document in check_machine(path.parent, local=True, gpu=False)
    }
    assert states["gil"].state == "fresh"
    assert states["handoff"].state == "skipped" and "needs a GPU" in states["handoff"].reasons[0]
    elsewhere = check_machine(path.parent, local=False, gpu=False)
    assert {document.state for document in elsewhere} == {"fresh", "missing"}
    path.unlink()
    (gil,) = [d for d in check_machine(path.parent, local=True, gpu=False) if d.experiment == "gil"]
    assert gil.state == "missing"


def test_the_table_has_a_line_for_each(path: Path) -> None:
    change(path, source_hash="0" * 64)
    text = status_table({"here": check_machine(path.parent, local=False, gpu=False)})
    assert text.splitlines()[0] == "here"
    assert len(text.splitlines()) == 1 + len(EXPERIMENTS)
    assert "stale" in text and "source 00000000" in text


def test_sources_are_what_can_change_a_number() -> None:
    names = {file.relative_to(ROOT).as_posix() for file in experiment_sources(GIL)}
    assert "src/graphgain/experiments/gil_process.py" in names
    assert "src/graphgain/measuring/summary.py" in names
    assert not names & {
        "src/graphgain/__init__.py",
        "src/graphgain/errors.py",
        "src/graphgain/experiments/__init__.py",
        "src/graphgain/measuring/lock.py",
    }
    native = {file.name for file in experiment_sources(EXPERIMENTS["gemm_host_cost"])}
    assert {"gemm_host_cost.cu", "captured.hpp"} <= native and "gate.hpp" not in native


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path) -> None:
    assert git_state([], tmp_path) == (None, None)


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state([GIL.source]) == (None, None)


def test_the_command_lists_every_machine(tmp_path: Path, path: Path) -> None:
    stage = make_stage(tmp_path)
    path.parent.rename(tmp_path / "h200")
    (tmp_path / "results").mkdir()
    (tmp_path / "h200").rename(stage.out)
    (tmp_path / "results" / "gb300-published").symlink_to(PUBLISHED / "gb300-published")
    done = stage.run(stage.command("status"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "gb300-published" and "h200" in lines
    assert any("(this machine)" in line for line in lines)
    fresh = [line.split() for line in lines if line.startswith("  gil")]
    assert ["gil", "fresh"] in fresh and ["gil", "published"] in fresh
